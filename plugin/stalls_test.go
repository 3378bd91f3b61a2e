package plugin

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/usage"
)

// quickStalls measures often.
func quickStalls(r *tuning) {
	r.timing.Stalls = usage.StallOptions{Every: 20 * time.Millisecond, Cores: 0.001, InLine: 0.001, Bytes: 1}
}

const lendsSoon = "spec: {throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 2s}}"

func TestAPodThatOnlyWaitsIsStalled(t *testing.T) {
	t.Parallel()
	done := filepath.Join(t.TempDir(), "done")
	n := newNode(t, lendsSoon, tuned(quickStalls))
	holder := n.pod("jvm").runs()
	holder.startsNow("app", burnUntil(done)...)
	n.pod("waits").runs().waitsAtGate("app")
	begin := time.Now()
	n.eventually("the pod was measured for long enough", func() bool { return time.Since(begin) > 2*time.Second })
	assert.Zero(t, n.view(holder.uid).StalledSince, "the pod burns CPU")

	require.NoError(t, os.WriteFile(done, nil, 0o600))
	n.eventually("the pod makes no progress", func() bool { return !n.view(holder.uid).StalledSince.IsZero() })
}
