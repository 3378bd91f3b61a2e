package waiting

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A pod's turn and the replacement of its container can come at once.
func TestAHookWhoseContainerIsGoneStartsNothingOnItsTurn(t *testing.T) {
	t.Parallel()
	l := throttle.New(time.Now(), throttle.Settings{})
	pod := l.Join(time.Now(), throttle.Request{UID: "pod"})
	require.True(t, pod.TryStart(time.Now()).Admitted)
	gone := make(chan struct{})
	assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.WithinLimits}, decided(pod, gone))
	close(gone)
	assert.Equal(t, gate.Verdict{Reason: gate.Replaced}, decided(pod, gone))

	deleted := l.Join(time.Now(), throttle.Request{UID: "deleted"})
	deleted.End(time.Now(), reasons.Deleted)
	assert.Equal(t, gate.Verdict{Reason: reasons.Deleted}, decided(deleted, gone))
}

// A deadline and the replacement of the container can come at once, too.
func TestAHookWhoseContainerIsGoneStartsNothingAtItsDeadline(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := throttle.New(now, throttle.Settings{})
	pod := l.Join(now, throttle.Request{UID: "pod"})
	gone := make(chan struct{})
	close(gone)
	assert.Equal(t, gate.Verdict{Reason: gate.Replaced}, expired(now, pod, gone))
	state, _ := pod.Status()
	assert.Equal(t, throttle.Waiting, state, "the pod keeps its place")
	assert.Equal(t, gate.Verdict{Go: true, Reason: reasons.WithinLimits}, expired(now, pod, make(chan struct{})))
}

// A deadline and the deletion of the pod can come at once, too.
func TestAHookWhosePodIsDeletedStartsNothingAtItsDeadline(t *testing.T) {
	t.Parallel()
	now := time.Now()
	l := throttle.New(now, throttle.Settings{})
	pod := l.Join(now, throttle.Request{UID: "pod"})
	pod.End(now, reasons.Deleted)
	assert.Equal(t, gate.Verdict{Reason: reasons.Deleted}, expired(now, pod, make(chan struct{})))
}
