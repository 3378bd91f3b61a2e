//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	coordinationclient "k8s.io/client-go/kubernetes/typed/coordination/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
)

// slot returns a Lease as a daemon creates it.
func slot(name, holder string, edit ...func(*coordinationv1.Lease)) *coordinationv1.Lease {
	seconds, now := int32(30), metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{leases.SlotLabel: "0123456789abcdef"}},
		Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &now},
	}
	for _, e := range edit {
		e(lease)
	}
	return lease
}

// With the rights for the scope Cluster and their policy, a daemon takes slots only for its own
// node, including expired slots of other nodes, and takes turns to sum up.
func TestSlotsOfTheOwnNode(t *testing.T) {
	files, err := chart.Render(chart.Release{Name: ownNodeRelease, Namespace: ownNodeRelease}, map[string]any{
		"fullnameOverride": ownNodeRelease, "namespace": map[string]any{"create": true}, "startPolicies": map[string]any{"monitoring": true, "clusterScope": true},
	})
	require.NoError(t, err)
	manifest := filepath.Join(t.TempDir(), "slots.yaml")
	all := files["namespace.yaml"] + "\n---\n" + files["rbac.yaml"] + "\n---\n" + files["slots.yaml"] + "\n---\n" + files["ownnode.yaml"]
	require.NoError(t, os.WriteFile(manifest, []byte(all), 0o600))
	kubectl(t, "apply", "--server-side", "-f", manifest)
	t.Cleanup(func() {
		out, err := node.Kubectl(context.Background(), "delete", "--ignore-not-found", "-f", manifest)
		assert.NoError(t, err, "%s", out)
	})
	of := func(name string) coordinationclient.LeaseInterface {
		client, err := kubernetes.NewForConfig(ownNodeConfig(name))
		require.NoError(t, err)
		return client.CoordinationV1().Leases(ownNodeRelease)
	}
	own, other := of("own"), of("other")
	const notMine, noSlot, tooLong = "only Leases that the node it runs on holds", "no Lease but slots", "no longer than 60 s"
	eventually(t, "the policy is in force", func() bool {
		_, err := own.Create(t.Context(), slot("p-0", "other"), metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err != nil && strings.Contains(err.Error(), notMine)
	})
	for name, c := range map[string]struct {
		by    coordinationclient.LeaseInterface
		lease *coordinationv1.Lease
		why   string
	}{
		"without holder":      {own, slot("p-0", ""), notMine},
		"of no node":          {of(""), slot("p-0", "own"), notMine},
		"no slot":             {own, slot("p-0", "own", func(l *coordinationv1.Lease) { l.Labels = nil }), noSlot},
		"for too long":        {own, slot("p-0", "own", func(l *coordinationv1.Lease) { *l.Spec.LeaseDurationSeconds = 1 << 30 }), tooLong},
		"another's candidate": {own, slot("pod-pacemaker-summary", "other", func(l *coordinationv1.Lease) { l.Labels = nil }), notMine},
	} {
		_, err := c.by.Create(t.Context(), c.lease, metav1.CreateOptions{})
		require.ErrorContains(t, err, c.why, name)
	}
	taken, err := own.Create(t.Context(), slot("p-0", "own"), metav1.CreateOptions{})
	require.NoError(t, err)
	_, err = own.Create(t.Context(), slot("pod-pacemaker-summary", "own", func(l *coordinationv1.Lease) { l.Labels = nil }), metav1.CreateOptions{})
	require.NoError(t, err)

	_, err = other.Update(t.Context(), taken, metav1.UpdateOptions{}) // renews the Lease of another holder
	require.ErrorContains(t, err, notMine)
	moved := slot("p-0", "other", func(l *coordinationv1.Lease) {
		l.ResourceVersion, l.Labels[leases.SlotLabel] = taken.ResourceVersion, "fedcba9876543210"
	})
	_, err = other.Update(t.Context(), moved, metav1.UpdateOptions{})
	require.ErrorContains(t, err, noSlot, "a slot cannot change its group")
	moved.Labels[leases.SlotLabel] = taken.Labels[leases.SlotLabel]
	_, err = other.Update(t.Context(), moved, metav1.UpdateOptions{})
	require.NoError(t, err, "the expired slot of another holder")
	require.NoError(t, own.Delete(context.Background(), "p-0", metav1.DeleteOptions{}), "delete of a slot, to clean up")
}
