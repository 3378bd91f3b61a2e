package plugin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// quickSigns shortens the times by which a start is judged. The CPU limit is low, so that a busy program exceeds it also on
// a busy machine.
func quickSigns(r *tuning) {
	r.timing.RunFor = 300 * time.Millisecond
	r.timing.Quiet = usage.QuietOptions{Window: time.Second, Cores: 0.001}
	r.timing.Stalls.Every = 20 * time.Millisecond
}

// burnUntil is a program that burns CPU until a file exists, and then sleeps.
func burnUntil(file string) []string {
	return []string{"sh", "-c", `while [ ! -e "$0" ]; do :; done; exec sleep 600`, file}
}

func TestStandaloneAStartEndsWhenThePodUsesLittleCPU(t *testing.T) {
	t.Parallel()
	done := filepath.Join(t.TempDir(), "done")
	n := newNode(t, oneAtATime, standalone, tuned(quickSigns))
	p := n.strangePod("jvm").runs()
	p.startsNow("app", burnUntil(done)...)
	// The pod is measured many times while it burns.
	n.eventually("it has run for longer than the minimum", func() bool {
		return time.Since(n.view(p.uid).Admitted) > 2*time.Second
	})
	assert.Equal(t, throttle.Starting, p.is(), "the pod burns CPU")
	require.NoError(t, os.WriteFile(done, nil, 0o600))
	p.becomes(throttle.Started, reasons.Inferred)
}
