package base

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
)

// The trailing --help keeps the command from starting. The arguments before it are parsed first, so an unknown verb,
// flag or value fails.
func TestCommandTakesTheArgumentsOfTheManifests(t *testing.T) {
	t.Parallel()
	daemon := filepath.Join(t.TempDir(), "pod-pacemaker")
	build := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", daemon, "./plugin/cmd/pod-pacemaker")
	build.Dir = "../.."
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, under := range []string{"../base", "../overlays/kubelet-config"} {
		for _, container := range everyContainer(only[*appsv1.DaemonSet](t, renderOn(t, under, ""))) {
			require.Empty(t, container.Command, "the image's entry point is the command")
			out, err := exec.CommandContext(t.Context(), daemon, append(container.Args, "--help")...).CombinedOutput()
			require.NoError(t, err, "%s, container %s: %s", under, container.Name, out)
			require.Contains(t, string(out), container.Args[0], under)
		}
	}
}
