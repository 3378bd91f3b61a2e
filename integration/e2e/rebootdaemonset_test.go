//go:build e2e && full

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// The node is rebooted and the daemon is one of its pods, from a DaemonSet: pods that start before
// it start unpaced, and those still starting when it is back count, so that no pod starts beside
// them. The number of unpaced starts is reported.
func TestRebootDaemonSet(t *testing.T) {
	const limit = 2
	importImage(t, installImage)
	in := installChart(t, nil)
	eventually(t, "the DaemonSet's pod is ready", func() bool { return allReady(t, installName, 1) })
	d := &daemon{admin: admin.NewClient(filepath.Join(in.dir, "run", "admin.sock"))}
	var err error
	d.http, err = node.Forward(t.Context(), chartAddress)
	require.NoError(t, err)
	ns := namespace(t)
	deploy(t, ns, "herd", rebooted, herdPod(0.1, sleeping("20s"))) // no limit yet
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, rebooted) })
	// Slots are not lent, although the pods idle while they start.
	d.configure(t, `{throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}, maxWait: 30m}`)
	d.idle(t)

	for _, part := range []interface{ Kill(context.Context) error }{node.Kubelet, node.Containerd} {
		require.NoError(t, part.Kill(t.Context()))
	}
	killPods(t)
	require.NoError(t, os.RemoveAll(filepath.Join(in.dir, "run")))
	begin := time.Now()
	require.NoError(t, node.Containerd.Start(t.Context()))
	require.NoError(t, node.Kubelet.Start(t.Context()))
	var up time.Time
	eventually(t, "the daemon is back", func() bool {
		s, err := d.admin.Status(t.Context())
		up = time.Now()
		return err == nil && s.Ready && s.Config.Name != ""
	})
	createPod(t, ns, "late", herdPod(0.1))
	var all []life
	again := func() (n int) { // pods that are ready again
		all = livesSince(t, ns, begin)
		for _, l := range all {
			if !l.started.Before(begin) && !l.ready.IsZero() {
				n++
			}
		}
		return n
	}
	// If few pods start before the daemon, two waits are needed: two slots, and 20 s for each start.
	eventually(t, "half of the pods are ready again", func() bool { return again() > rebooted/2 })
	eventually(t, "all pods are ready again", func() bool { return again() == len(all) && allReady(t, ns, rebooted+1) })
	logLives(t, begin, all)
	slipped, starting, asked := 0, 0, 0
	for _, l := range all {
		if l.started.Before(up) {
			slipped++
			if l.ready.After(up.Add(kubeletTells)) {
				starting++
			}
		}
		if l.created.After(up) {
			asked++
			assert.Less(t, beside(all, l.started), limit, "pods starting when %s started, %.1f s after the daemon was back", l.pod.Name, l.started.Sub(up).Seconds())
		}
	}
	assert.Positive(t, asked)
	assert.Positive(t, slipped, "unpaced starts before the daemon: without one there is nothing to check")
	found := d.metric(t, `pod_pacemaker_admissions_total{reason="Adopted"}`)
	assert.GreaterOrEqual(t, found, float64(starting), "unpaced starts that the daemon counted")
	figure(t, "DaemonSet: the daemon was back %.1f s after containerd began; %d of %d pods started unpaced before, %d of them still starting then, %.0f counted; all ready after %.1f s",
		up.Sub(begin).Seconds(), slipped, rebooted, starting, found, lastReady(all).Sub(begin).Seconds())
}

// kubeletTells is more than kubelet's report of a ready pod takes to reach the daemon.
const kubeletTells = 2 * time.Second

// beside returns how many pods were between the start of their process and ready at a time, without
// a pod that started at that very time.
func beside(all []life, at time.Time) (n int) {
	for _, l := range all {
		if l.started.Before(at) && l.ready.After(at) {
			n++
		}
	}
	return n
}
