package demo

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// onePod is a herd of one pod.
func onePod(n *fakeNode) *kubelet {
	h := Herd{Pods: 1, CPUs: []int{0}, Burn: 8 * time.Second, Limit: 1}
	n.begin = time.Now()
	return &kubelet{node: n, herd: h, rec: newRecorder("test", 0, h)}
}

// keepFor keeps the pod for a time and returns the recording.
func keepFor(t *testing.T, k *kubelet, length time.Duration) timeline.Run {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), length)
	defer cancel()
	require.NoError(t, k.run(ctx))
	return k.rec.finish(time.Now())
}

func TestAPodThatIsReadyInTimeIsLeftAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{burn: 8 * time.Second}
		k := onePod(n)
		run := keepFor(t, k, time.Minute)
		assert.Equal(t, []timeline.Start{{Began: 0, Ready: 8 * time.Second}}, run.Pods[0].Starts)
		assert.Equal(t, []string{"0s sandbox 0", "0s create 0", "0s start"}, n.log)
		select {
		case <-k.rec.over:
		default:
			t.Error("it was not reported that all pods are ready")
		}
	})
}

func TestTheProbeKillsAndTheBackOffGrows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{burn: time.Hour}
		run := keepFor(t, onePod(n), 110*time.Second)
		// The probe comes every 3 s of the pod's life, whenever a process started.
		assert.Equal(t, []string{
			"0s sandbox 0", "0s create 0", "0s start", "18s stop",
			"18s create 1", "18s start", "36s stop",
			"46s create 2", "46s start", "63s stop",
			"83s create 3", "83s start", "99s stop",
		}, n.log)
		assert.Equal(t, 4, run.Summary().Kills)
		earliest, latest := probeKills()
		for _, s := range run.Pods[0].Starts {
			assert.GreaterOrEqual(t, s.Ended-s.Began, earliest)
			assert.LessOrEqual(t, s.Ended-s.Began, latest)
			assert.Zero(t, s.Ready)
		}
	})
}

func TestAProcessThatEndsByItselfIsRestarted(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		run := keepFor(t, onePod(&fakeNode{burn: time.Hour, dies: 5 * time.Second}), 8*time.Second)
		starts := run.Pods[0].Starts
		require.Len(t, starts, 2)
		assert.Equal(t, timeline.Start{Began: 0, Ended: 5 * time.Second}, starts[0])
		assert.Zero(t, run.Summary().Kills)
	})
}

func TestRefusedRequestsAreRetriedLikeKubelet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{burn: time.Second, sandboxes: []error{errRefused, errRefused}, creates: []error{errRefused, errRefused}}
		k := onePod(n)
		run := keepFor(t, k, 2*time.Minute)
		p := run.Pods[0]
		assert.Equal(t, 4, p.Refused)
		require.Len(t, p.Starts, 1)
		// Two sandboxes and the second create wait 10 to 15 s each, the first create does not wait.
		assert.GreaterOrEqual(t, p.Starts[0].Began, 30*time.Second)
		assert.LessOrEqual(t, p.Starts[0].Began, 45*time.Second)
		require.Len(t, n.log, 7)
		assert.Contains(t, n.log[2], "sandbox 2")
	})
}

func TestABrokenRuntimeEndsTheDemo(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]*fakeNode{
		"sandbox": {sandboxes: []error{errBroken, errBroken, errBroken, errBroken}},
		"create":  {creates: []error{errBroken, errBroken, errBroken, errBroken}},
		"start":   {starts: []error{errBroken, errBroken, errBroken, errBroken, errBroken}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				err := onePod(n).run(t.Context())
				require.ErrorIs(t, err, errBroken)
				assert.ErrorContains(t, err, "pod herd-1: ")
			})
		})
	}
}

func TestOneFailedStartIsAnExit(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &fakeNode{burn: time.Second, starts: []error{errBroken}}
		run := keepFor(t, onePod(n), 20*time.Second)
		assert.Equal(t, []string{"0s sandbox 0", "0s create 0", "0s start", "0s create 1", "0s start"}, n.log)
		assert.Equal(t, 1, run.Summary().Ready)
	})
}
