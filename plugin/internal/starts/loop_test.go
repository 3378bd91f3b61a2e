package starts

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// proc writes the files of a process in a made-up /proc.
func proc(t *testing.T, root string, ticks string) {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Join(root, "7"), 0o755))
	for file, content := range map[string]string{
		"stat": "7 (app) S 1 7 7 0 -1 4194560 0 0 0 0 " + ticks + " 0 0 20 0 1 0 0 0 0 0" + strings.Repeat(" 0", 29) + "\n",
		"io":   "rchar: 0\nwchar: 0\nsyscr: 0\nsyscw: 0\nread_bytes: 0\nwrite_bytes: 0\ncancelled_write_bytes: 0\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(root, "7", file), []byte(content), 0o600))
	}
}

// stalled returns since when the pod makes no progress, as found by a round of the loop at this time.
func (s *Starts) stalled(now time.Time, uid string) time.Time {
	s.measure(now, s.underWay())
	v, _ := s.ledger.limiter.View(now, uid)
	return v.StalledSince
}

func TestStallsAreMeasuredWhileAPodWaits(t *testing.T) {
	t.Parallel()
	root, now := t.TempDir(), time.Now()
	log, logged := logtest.NewNullLogger()
	s := aStarts(func(o *Options) { o.Log, o.Roots = log, usage.Roots{Proc: root, Cgroup: "/nowhere"} })
	s.configured(t, "spec: {throttleConfig: {maxConcurrent: {value: 1}}}", throttle.Settings{MaxConcurrent: 1})
	s.runs(now, "holder", 7)
	s.starts(now, "holder")
	logged.Reset()
	s.publish(now)
	assert.Zero(t, s.stalled(now, "holder"), "no pod waits")

	waits := s.joins(now, throttle.Request{UID: "waits"})
	assert.Equal(t, now.Add(s.o.Timing.Stalls.Every), s.measure(now.Add(time.Millisecond), s.underWay()), "the loop does not measure more often")
	for i := range 10 {
		assert.Zero(t, s.stalled(now.Add(time.Duration(i)*time.Second), "holder"), "without a measurement, no stall is known")
	}
	blind := slices.DeleteFunc(logged.AllEntries(), func(e *logrus.Entry) bool {
		return !strings.Contains(e.Message, "cannot read what pod default/holder uses")
	})
	require.Len(t, blind, 1, "the fault is logged once")
	assert.Equal(t, "holder", blind[0].Data["pod_name"])

	proc(t, root, "5 5")
	for i := range 5 {
		assert.Zero(t, s.stalled(now.Add(time.Duration(20+i)*time.Second), "holder"), "the window is not full")
	}
	assert.Equal(t, now.Add(20*time.Second), s.stalled(now.Add(25*time.Second), "holder"))

	waits.End(now.Add(25*time.Second), reasons.Deleted)
	assert.Zero(t, s.stalled(now.Add(26*time.Second), "holder"), "no pod waits any more")
	s.joins(now.Add(27*time.Second), throttle.Request{UID: "other"})
	s.ledger.limiter.Configure(now.Add(27*time.Second), throttle.Settings{MaxConcurrent: 1, NoProgressAfter: -1})
	assert.Zero(t, s.stalled(now.Add(40*time.Second), "holder"), "no slot is lent")
}

func TestTheRoundsOfTheLoopDoNotSetThePaceOfMeasurements(t *testing.T) {
	t.Parallel()
	s := aStarts(func(o *Options) { o.Roots = usage.Roots{Proc: "/proc", Cgroup: "/nowhere"} })
	now := time.Now()
	ticket := s.starts(now, "pod")
	s.runs(now, "pod", os.Getpid())
	s.publish(now)
	every := s.o.Timing.Stalls.Every
	due := now.Add(every)
	took := func() time.Duration {
		c := s.ledger.pods["pod"].course
		if c == nil {
			return 0
		}
		took, known := c.Took()
		require.Equal(t, known, took.Wall > 0)
		return took.Wall
	}
	for at := now; at.Before(due); at = at.Add(10 * time.Millisecond) {
		require.Equal(t, due, s.measure(at, s.underWay()))
		require.Zero(t, took())
	}
	require.Equal(t, due.Add(every), s.measure(due, s.underWay()))
	require.Equal(t, every, took())

	ticket.End(due, reasons.Ready)
	s.publish(now)
	require.Zero(t, took(), "the measurements of a start are forgotten at its end")
	assert.Nil(t, s.ledger.pods["pod"].course)
}

func TestARoundContinuesWithTheOtherPodsAfterAPanic(t *testing.T) {
	t.Parallel()
	now := time.Now()
	broken := false
	s := aStarts(func(o *Options) {
		o.Pods = &asked{get: func(uid string) {
			if broken && uid == "broken" {
				panic("the pod watch is broken")
			}
		}}
	})
	uids := []string{"broken", "1", "2", "3", "4"}
	for _, uid := range uids {
		s.runs(now, uid, 0)
		s.adopts(now, throttle.Request{UID: uid}, now)
		s.exits(now, uid)
	}
	s.publish(now)
	broken = true
	require.NotPanics(t, func() { s.follow(now.Add(time.Minute)) })
	for _, uid := range uids {
		_, reason := s.ledger.limiter.Lookup(uid).Status()
		if uid == "broken" {
			assert.Equal(t, reasons.Adopted, reason)
			continue
		}
		assert.Equal(t, reasons.Completed, reason, uid)
	}
}

// A pod may leave the waiting room for good before it has a sandbox. Without an API server, its end is never
// reported.
func TestAPodOfTheRoomThatNeverGotASandboxIsForgotten(t *testing.T) {
	t.Parallel()
	s := aStarts()
	s.configured(t, "spec: {}", throttle.Settings{})
	now := time.Now()
	gone, _ := s.EnterRoom(now, Identity{UID: "gone", Namespace: "default", Name: "gone"}, podwatch.Pod{}, now, time.Time{}, true)
	s.EnterRoom(now, Identity{UID: "waits", Namespace: "default", Name: "waits"}, podwatch.Pod{}, now, time.Time{}, true)
	_, waits := s.EnterRoom(now, Identity{UID: "exempt", Namespace: "kube-system", Name: "exempt"}, podwatch.Pod{}, now, time.Time{}, true)
	require.False(t, waits)
	s.round(now)
	require.Len(t, s.ledger.pods, 2, "both pods wait, and the exempt one is gone")
	gone.t.End(now, reasons.Deleted)
	s.round(now)
	assert.NotContains(t, s.ledger.pods, "gone")
	assert.Contains(t, s.ledger.pods, "waits")
}

// Nothing reports the deletion of a pod that the watch never knew.
func TestAPodThatCameAndWentWhileTheWatchWasAwayWaitsNoMore(t *testing.T) {
	t.Parallel()
	onNode(t, func(t *testing.T, n *node) {
		known := n.crowd()
		n.watch.away = true
		gone := n.stranger("gone")
		require.False(t, gone.run().Granted)
		n.passes(time.Minute)
		gone.is(throttle.Waiting, "", "kubelet may be away, too")
		n.watch.away = false
		n.crowd()
		comes := n.stranger("comes")
		require.False(t, comes.run().Granted)
		n.passes(29 * time.Second)
		gone.is(throttle.Gone, reasons.Deleted)
		comes.is(throttle.Waiting, "", "the watch may not know it yet")
		n.passes(time.Minute)
		comes.is(throttle.Gone, reasons.Deleted)
		known.is(throttle.Waiting, "", "the watch knows it")
	})
}

// The runtime may not have reported the container of a hook, as after a restart of the daemon.
func TestNothingIsLeftOfAPodThatOnlyItsHookNamed(t *testing.T) {
	t.Parallel()
	now := time.Now()
	s := aStarts()
	s.locked(func(l *ledger) { l.freeze(true) })
	ticket := s.EnterGate(now, Identity{UID: "stranger", Namespace: "default", Name: "stranger"}, "by-hand", now, time.Time{})
	assert.Nil(t, ticket.Gone)
	require.Equal(t, throttle.Waiting, ticket.Outlook.State)
	known := func() (is bool) {
		s.locked(func(l *ledger) { is = l.pods["stranger"] != nil })
		return is
	}
	s.locked(func(l *ledger) {
		assert.Empty(t, l.pods["stranger"].containers, "only the runtime adds containers")
	})
	s.round(now)
	assert.True(t, known(), "its hook waits")
	ticket.t.End(now, reasons.Deleted)
	s.round(now)
	assert.False(t, known())
}
