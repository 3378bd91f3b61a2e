//go:build e2e

package e2e

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Without an API server, the daemon reads its config from a file, and sees from the CPU use of a
// pod's containers that it has started.
func TestStandalone(t *testing.T) {
	const herd, limit = 6, 2
	config := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(config, []byte(`apiVersion: pod-pacemaker.io/v1alpha1
kind: PacemakerConfig
metadata: {name: standalone}
spec: {throttleConfig: {maxConcurrent: {value: 2}}}
`), 0o600))
	d := startDaemonWith(t, "--config", config, "--gate", "always")
	ns := namespace(t)
	begin := time.Now()
	deploy(t, ns, "herd", herd, herdPod(2))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	d.idle(t)
	all := lives(t, ns)
	logLives(t, begin, all)
	assert.LessOrEqual(t, mostStarting(t, all), limit, "pods between the start of their process and ready")
	ended := d.ended(t, ns)
	assert.Len(t, ended, herd)
	for name, pod := range ended {
		assert.Equal(t, reasons.Inferred, pod.Reason, name)
	}
}
