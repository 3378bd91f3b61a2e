package keeper

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestRootIsFrom(t *testing.T) {
	t.Parallel()
	run := Run{ID: "0123abcd", Dir: "/tmp/pod-pacemaker-lab-0123abcd"}
	for name, c := range map[string]struct {
		mountinfo string
		is        bool
	}{
		"overlay container": {"300 200 0:50 / / rw - overlay overlay rw,lowerdir=/x,upperdir=/tmp/pod-pacemaker-lab-0123abcd/containerd/1/fs,workdir=/y\n", true},
		"native container":  {"300 200 8:1 /pod-pacemaker-lab-0123abcd/containerd/2/fs / rw - ext4 /dev/sda rw\n", true},
		"other run":         {"300 200 8:1 /pod-pacemaker-lab-0123abce/fs / rw - ext4 /dev/sda rw\n", false},
		"host that sees a mount of the run": {
			"20 1 8:1 / / rw - ext4 /dev/sda rw\n21 20 8:1 /tmp/pod-pacemaker-lab-0123abcd/x /mnt rw - ext4 /dev/sda rw\n", false,
		},
		"host that mounted something in the run's folder": {
			"20 1 8:1 / / rw - ext4 /dev/sda rw\n21 20 0:9 / /tmp/pod-pacemaker-lab-0123abcd/m rw - tmpfs none rw\n", false,
		},
	} {
		require.Equal(t, c.is, rootIsFrom(c.mountinfo, run), name)
	}
}

func TestMergedEnvironmentHasEachNameOnce(t *testing.T) {
	t.Parallel()
	require.Equal(t,
		[]string{"HOME=/root", "PATH=/new", "EMPTY="},
		merge([]string{"PATH=/old", "HOME=/root"}, []string{"PATH=/new", "EMPTY="}))
}
