//go:build e2e && full

package e2e

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// Two daemons side by side on one node follow a generous and a narrow config of their own: the
// narrow one decides, because a pod needs both. Each reports its own config. Once the narrow one is
// gone, the other still paces.
func TestTwoInstancesOnOneNode(t *testing.T) {
	applyConfig(t, "wide", `{instance: wide, throttleConfig: {maxConcurrent: {value: 3}, noProgressAfter: 0s}}`)
	applyConfig(t, "narrow", `{instance: narrow, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}`)
	wide := startInstance(t, "wide", "05")
	narrow := startInstance(t, "narrow", "06")
	for name, d := range map[string]*daemon{"wide": wide, "narrow": narrow} {
		eventually(t, name+" follows its config", func() bool { return d.status(t).Config.Name == name })
		assert.Equal(t, name, d.status(t).Instance)
	}

	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "both", 5, herdPod(1, sleeping("2s")))
	eventually(t, "both hold pods of the same herd", func() bool { return len(narrow.status(t).Waiting) > 0 })
	for name, limit := range map[string]int32{"wide": 3, "narrow": 1} {
		eventually(t, name+" reports its own config", func() bool {
			out, err := node.Kubectl(t.Context(), "get", "pacemakernode", node.NodeName+"."+name, "-o", "json")
			var told v1alpha1.PacemakerNode
			return err == nil && json.Unmarshal(out, &told) == nil &&
				told.Status.Config == name && told.Status.Limit == limit && told.Status.Instance == name
		})
	}
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 5) })
	all := lives(t, ns)
	logLives(t, begin, all)
	assert.Equal(t, 1, mostStarting(t, all), "pods between the start of their process and ready, by the narrow limit")
	for _, l := range all {
		assert.Zero(t, restarts(l.pod), "restarts of %s", l.pod.Name)
	}
	wide.idle(t)
	narrow.idle(t)

	require.NoError(t, narrow.Stop(t.Context()))
	ns = namespace(t)
	deploy(t, ns, "one", 6, herdPod(1, sleeping("4s")))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 6) })
	most := mostStarting(t, lives(t, ns))
	assert.LessOrEqual(t, most, 3, "pods starting at a time, by the limit of the remaining daemon")
	assert.Greater(t, most, 1, "pods starting at a time, without the narrow limit")
}

// startInstance runs the daemon of an instance, with the rights of its own release: the right to
// its Lease comes with the instance.
func startInstance(t *testing.T, name, index string) *daemon {
	t.Helper()
	access := chartAccess(t, name, map[string]any{"instance": name, "namespace": map[string]any{"create": true}}, readsOwnDaemonSet(name))
	return startDaemonAs(t, access, "--instance", name, "--nri-index", index, "--namespace", name)
}
