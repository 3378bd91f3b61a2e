package main

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/kubelet"
)

func TestTheFirstKubeletConfigThatExistsCounts(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	underFile := filepath.Join(file(t, "KUBELET_ARGS="), "config.json") // the folder of one distribution is a file of another
	patient := file(t, "kind: KubeletConfiguration\nruntimeRequestTimeout: 15m\n")
	hasty := file(t, "kind: KubeletConfiguration\nruntimeRequestTimeout: 1m\n")
	for _, c := range []struct {
		candidates []string
		says       string
		timeout    time.Duration
	}{
		{[]string{patient, hasty}, "copied " + patient, 12 * time.Minute},
		{[]string{missing, hasty, patient}, "copied " + hasty, 48 * time.Second},
		{[]string{underFile, hasty}, "copied " + hasty, 48 * time.Second},
		{[]string{missing}, "none of [" + missing + "] exists", 96 * time.Second}, // 0.8 of kubelet's 2 minutes
	} {
		to := filepath.Join(t.TempDir(), "config.yaml")
		assert.Contains(t, says(t, append([]string{"copy-kubelet-config", "--to", to}, c.candidates...)...), c.says)
		timeout, err := kubelet.GateTimeoutOf(to)
		require.NoError(t, err)
		assert.Equal(t, c.timeout, timeout)
	}
}

func TestAKubeletConfigThatCannotBeReadIsAnError(t *testing.T) {
	t.Parallel()
	code, _, stderr := call(t, "copy-kubelet-config", "--to", filepath.Join(t.TempDir(), "c"), t.TempDir())
	assert.NotZero(t, code)
	assert.Contains(t, stderr, "is a directory")
}
