//go:build e2e && full

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// applyConfig creates a PacemakerConfig until the test ends.
func applyConfig(t *testing.T, name, spec string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "config.yaml")
	yaml := "apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: " + name + "}\nspec: " + spec + "\n"
	require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	kubectl(t, "apply", "-f", file)
	t.Cleanup(func() {
		out, err := node.Kubectl(context.Background(), "delete", "-f", file)
		assert.NoError(t, err, "%s", out)
	})
}

// The daemon reports on its node in a PacemakerNode, with only the rights of the shipped roles. It
// follows the labels of the node and the mode of the config.
func TestNodeReportsHowPodsStart(t *testing.T) {
	d := startDaemon(t)
	applyConfig(t, "elsewhere", `{nodeSelector: {pace: slow}, priority: 5, throttleConfig: {maxConcurrent: {value: 1}}}`)
	// The pods do nothing, which is no progress. Slots are not lent for that.
	applyConfig(t, "tells", `{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}`)
	eventually(t, "the config is in force", func() bool { return d.status(t).Config.Name == "tells" })
	ns := namespace(t)
	deploy(t, ns, "herd", 4, herdPod(1, newLatch(t).holds))
	told := func() v1alpha1.PacemakerNode {
		return object[v1alpha1.PacemakerNode](t, "pacemakernode", node.NodeName)
	}
	eventually(t, "the PacemakerNode shows the waiting pods", func() bool {
		out, err := node.Kubectl(t.Context(), "get", "pacemakernodes", node.NodeName)
		return err == nil && strings.Contains(string(out), "Concurrency") && told().Status.Waiting == 3
	})
	n := told()
	require.Len(t, n.OwnerReferences, 1)
	assert.Equal(t, "Node", n.OwnerReferences[0].Kind)
	assert.Equal(t, "tells", n.Status.Config)
	assert.True(t, meta.IsStatusConditionTrue(n.Status.Conditions, v1alpha1.ConditionReady), n.Status.Conditions)
	assert.EqualValues(t, 1, n.Status.Limit)
	assert.EqualValues(t, 1, n.Status.Starting)
	assert.NotNil(t, n.Status.WaitingSince)
	assert.True(t, meta.IsStatusConditionTrue(n.Status.Conditions, v1alpha1.ConditionConnected), n.Status.Conditions)
	t.Log("\n" + kubectl(t, "get", "pacemakernodes"))

	assert.Len(t, begun(t, ns), 1, "pods that have begun")
	kubectl(t, "patch", "pacemakerconfig", "tells", "--type=merge", "-p", `{"spec":{"mode":"Disabled"}}`)
	eventually(t, "containerd has begun all pods in the mode that holds none", func() bool { return len(begun(t, ns)) == 4 })
	assert.Empty(t, d.status(t).Waiting)

	kubectl(t, "label", "node", node.NodeName, "pace=slow")
	t.Cleanup(func() {
		out, err := node.Kubectl(context.Background(), "label", "node", node.NodeName, "pace-")
		assert.NoError(t, err, "%s", out)
	})
	eventually(t, "the config of the new label is in force", func() bool { return told().Status.Config == "elsewhere" })

	require.NoError(t, d.Stop(t.Context()))
	defer func() {
		if t.Failed() {
			t.Log(kubectl(t, "get", "pacemakernodes,pacemakerconfigs", "-o", "yaml"))
		}
	}()
	for _, c := range told().Status.Conditions {
		assert.Equal(t, metav1.ConditionFalse, c.Status, c.Type)
		assert.Equal(t, v1alpha1.ReasonStopped, c.Reason, c.Type)
	}
}
