package kubelet

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestGateTimeoutOf(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content string
		want    time.Duration
		fault   string
	}{
		{"kind: KubeletConfiguration\nruntimeRequestTimeout: 15m\n", 12 * time.Minute, ""},
		{"kind: KubeletConfiguration\nruntimeRequestTimeout: 75m\n", time.Hour, ""},
		{"kind: KubeletConfiguration\nruntimeRequestTimeout: 24h\n", MostGateTimeout, ""},
		{"kind: KubeletConfiguration\n", 96 * time.Second, ""},
		{"kind: KubeletConfiguration\nruntimeRequestTimeout: 0s\n", 96 * time.Second, ""},
		{"kind: KubeletConfiguration\nruntimeRequestTimeout: soon\n", 0, "soon"},
		{"kind: Pod\n", 0, "must be KubeletConfiguration"},
		{"[", 0, "yaml"},
	} {
		path := filepath.Join(t.TempDir(), "config.yaml")
		require.NoError(t, os.WriteFile(path, []byte(c.content), 0o600))
		got, err := GateTimeoutOf(path)
		if c.fault != "" {
			require.ErrorContains(t, err, c.fault)
			require.ErrorContains(t, err, path)
			continue
		}
		require.NoError(t, err)
		assert.Equal(t, c.want, got)
	}
	_, err := GateTimeoutOf(filepath.Join(t.TempDir(), "absent"))
	require.ErrorIs(t, err, os.ErrNotExist)
}

// Preflight takes the path from the flag --kubelet-config, and runs as root.
func TestGateTimeoutOfWhatIsNoSmallFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, unix.Mkfifo(dir+"/pipe", 0o600))
	require.NoError(t, os.WriteFile(dir+"/large", make([]byte, maxConfig+1), 0o600))
	require.NoError(t, os.WriteFile(dir+"/full", append([]byte("kind: KubeletConfiguration\n#"), bytes.Repeat([]byte("x"), maxConfig-28)...), 0o600))
	for path, fault := range map[string]string{
		"/dev/zero": "no regular file", dir + "/pipe": "no regular file", dir: "no regular file", dir + "/large": "is larger than 1048576 bytes",
	} {
		_, err := GateTimeoutOf(path)
		require.ErrorContains(t, err, fault)
	}
	timeout, err := GateTimeoutOf(dir + "/full")
	require.NoError(t, err)
	assert.Equal(t, 96*time.Second, timeout)
}
