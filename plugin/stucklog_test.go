package plugin

import (
	"context"
	"os"
	"testing"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/logqueue"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// When the daemon's log blocks, handlers answer, the gate admits pods in order, and the metrics count the lost entries.
func TestABlockedLogHoldsNoPodUp(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	require.NoError(t, err)
	queue, log := logqueue.New(8, nil), logrus.New()
	log.SetLevel(logrus.DebugLevel)
	log.SetOutput(queue.Writer(write))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); queue.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		require.NoError(t, read.Close()) // ends the blocked write
		<-done
		require.NoError(t, write.Close())
	})
	n := newNode(t, oneAtATime, with(func(o *Options) { o.Log, o.LogDropped = log, queue.Dropped }))
	n.eventually("entries are lost", func() bool {
		for range 100 {
			log.Info("x")
		}
		return queue.Dropped() > 0
	})

	holder := n.occupy("holder")
	a := n.pod("waits").runs().waitsAtGate("app")
	holder.getsReady()
	a.succeeds()
	a.pod.becomes(throttle.Starting, reasons.WithinLimits)
	a.pod.getsReady()
	n.slotsFree()
	assert.Positive(t, counted(t, n, "pod_pacemaker_log_dropped_total"))
}
