//go:build e2e && full

package e2e

import (
	"fmt"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// Another node holds all slots of the cluster: the pods of the real node wait, by its containerd, until the slots of the
// other node expire. Then they start as the slots allow, and give each back when kubelet reports the pod ready.
func TestARealNodeTakesSlotsOfTheCluster(t *testing.T) {
	const slots, herd = 2, 5
	f := newFleet(t, 1, slots)
	other := f.nodes[0]
	d := startDaemon(t)
	d.configure(t, "{}")
	eventually(t, "the policy is in force on the real node", func() bool { return d.policy(t, "registry-"+f.namespace).Name != "" })
	for i := range slots {
		other.run(fmt.Sprintf("never-ready-%d", i), -1)
	}
	eventually(t, "the other node holds all slots", func() bool { return slices.Equal(f.holders(), []string{other.name, other.name}) })

	var names []string
	for i := range herd {
		names = append(names, fmt.Sprintf("real-%d", i))
		createPod(t, f.namespace, names[i], herdPod(0.1, sleeping("1s")))
	}
	eventually(t, "all pods of the real node wait", func() bool { return len(d.status(t).Waiting) == herd })
	outside := namespace(t)
	createPod(t, outside, "outside", herdPod(0.1))
	awaitReady(t, outside, "outside")
	assert.Empty(t, begun(t, f.namespace), "pods that have begun while another node held all slots")

	require.NoError(t, other.Kill(t.Context()))
	held := 0
	eventually(t, "all pods of the real node are ready", func() bool {
		now := len(f.holders())
		require.LessOrEqual(t, now, slots)
		held = max(held, now)
		for _, name := range names {
			if !isReady(t, f.namespace, name) {
				return false
			}
		}
		return true
	})
	var all []life
	for _, l := range lives(t, f.namespace) {
		if slices.Contains(names, l.pod.Name) {
			all = append(all, l)
		}
	}
	assert.Equal(t, slots, held, "highest number of slots held")
	assert.Equal(t, slots, mostStarting(t, all), "pods of the real node between the start of their process and ready")
	eventually(t, "all slots are free", func() bool { return len(f.holders()) == 0 })
}
