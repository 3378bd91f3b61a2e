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

	begin, up := in.rebootNode(t, d)
	createPod(t, ns, "late", herdPod(0.1))
	all := readyAgain(t, ns, begin, rebooted+1)
	logLives(t, begin, all)
	slipped, starting := 0, 0
	for _, l := range all {
		if l.started.Before(up) {
			slipped++
			if l.ready.After(up.Add(kubeletTells)) {
				starting++
			}
		}
	}
	asked, _ := assertPacedSince(t, d, all, up, limit)
	assert.Positive(t, asked)
	found := d.metric(t, `pod_pacemaker_admissions_total{reason="Adopted"}`)
	// A container that was made just before may start just after the daemon was back.
	assert.Positive(t, float64(slipped)+found, "unpaced starts: without one there is nothing to check")
	assert.GreaterOrEqual(t, found, float64(starting), "unpaced starts that the daemon counted")
	figure(t, "DaemonSet: the daemon was back %.1f s after containerd began; %d of %d pods started unpaced before, %d of them still starting then, %.0f counted; all ready after %.1f s",
		up.Sub(begin).Seconds(), slipped, rebooted, starting, found, lastReady(all).Sub(begin).Seconds())
}

// The daemon comes up when most pods have their sandbox, as one of a DaemonSet does. kubelet counts a refusal of their
// containers, which ran before the reboot, as a crash, and tries again later each time. All of them start within the
// limit in the end. How long slots stay empty for that is reported.
func TestRebootWithALateDaemon(t *testing.T) {
	const limit, start = 2, 20 * time.Second
	d := startDaemonWith(t, "--kubeconfig", asServiceAccount(t), "--node-name", node.NodeName)
	ns := namespace(t)
	deploy(t, ns, "herd", rebooted, herdPod(0.1, sleeping(start.String()))) // no limit yet
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, rebooted) })
	d.configure(t, `{throttleConfig: {maxConcurrent: {value: 2}, noProgressAfter: 0s}, maxWait: 30m}`)
	d.idle(t)
	shutDown(t, d)

	begin := time.Now()
	require.NoError(t, node.Containerd.Start(t.Context()))
	require.NoError(t, node.Kubelet.Start(t.Context()))
	polled(t, 10*time.Millisecond, "most pods have a sandbox", func() bool { return shims(t) > rebooted*3/4 })
	require.NoError(t, d.Start(t.Context()))
	up := time.Now()
	all := readyAgain(t, ns, begin, rebooted)
	logLives(t, begin, all)
	asked, ended := assertPacedSince(t, d, all, up, limit)
	assert.Positive(t, asked)
	s := d.status(t)
	assert.Positive(t, s.Refused.Container, "refused at the container: without one there is nothing to check")
	figure(t, "the daemon was back %.1f s after containerd began; %d of %d pods made their container later; all ready %.1f s after it was back, %.0f s at least; %d refused at the sandbox, %d at the container; the wait of %d in the gate ended without a turn",
		up.Sub(begin).Seconds(), asked, rebooted, lastReady(all).Sub(up).Seconds(), (start * time.Duration((asked+1)/limit)).Seconds(), s.Refused.Sandbox, s.Refused.Container, ended)
}

// shims returns how many shims of the node run.
func shims(t *testing.T) (n int) {
	t.Helper()
	for _, pid := range podProcesses(t) {
		if isShim(pid) {
			n++
		}
	}
	return n
}

// readyAgain waits until all pods of a herd have started again and are ready, and returns them. ready is how many pods
// are ready then.
func readyAgain(t *testing.T, ns string, begin time.Time, ready int) (all []life) {
	t.Helper()
	again := func() (n int) {
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
	eventually(t, "all pods are ready again", func() bool { return again() == len(all) && allReady(t, ns, ready) })
	return all
}

// assertPacedSince checks that no pod that made its container after the daemon was up started beside as many as the
// limit. One at a time may, if it has waited in the gate for as long as kubelet allows. It returns how many pods made
// their container since, and how many of them waited that long.
func assertPacedSince(t *testing.T, d *daemon, all []life, up time.Time, limit int) (asked, ended int) {
	t.Helper()
	longest := d.status(t).Gate.TimeoutSeconds.Duration() - time.Second
	for _, l := range all {
		if !l.created.After(up) {
			continue
		}
		asked++
		most := limit - 1
		if l.started.Sub(l.created) >= longest {
			most, ended = limit, ended+1
		}
		assert.LessOrEqual(t, beside(all, l.started), most, "pods starting when %s started, %.1f s after the daemon was back", l.pod.Name, l.started.Sub(up).Seconds())
	}
	return asked, ended
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

// rebootNode reboots the node on which only the DaemonSet is installed. It returns when containerd began, and when the
// daemon had its configuration again.
func (in *install) rebootNode(t *testing.T, d *daemon) (begin, up time.Time) {
	t.Helper()
	for _, part := range []interface{ Kill(context.Context) error }{node.Kubelet, node.Containerd} {
		require.NoError(t, part.Kill(t.Context()))
	}
	killPods(t)
	require.NoError(t, os.RemoveAll(filepath.Join(in.dir, "run")))
	begin = time.Now()
	require.NoError(t, node.Containerd.Start(t.Context()))
	require.NoError(t, node.Kubelet.Start(t.Context()))
	eventually(t, "the daemon is back", func() bool {
		s, err := d.admin.Status(t.Context())
		up = time.Now()
		return err == nil && s.Ready && s.Config.Name != ""
	})
	return begin, up
}
