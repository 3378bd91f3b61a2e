package deploy

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
)

// buildDaemon builds the command that the manifests start.
func buildDaemon(t *testing.T) string {
	t.Helper()
	return buildProgram(t, "pod-pacemaker")
}

// buildProgram builds a command. It uses the flags of `go test`, so that its packages are compiled already.
func buildProgram(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	out, err := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-o", path, "../plugin/cmd/"+name).CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

// The trailing --help keeps the command from starting. The arguments before it are parsed first, so an unknown verb,
// flag or value fails.
func TestCommandTakesTheArgumentsWeShip(t *testing.T) {
	t.Parallel()
	daemon := buildDaemon(t)

	lines := map[string][]string{}
	for _, under := range []string{"../base", "../overlays/kubelet-config"} {
		for _, container := range everyContainer(only[*appsv1.DaemonSet](t, renderOn(t, under, ""))) {
			require.Empty(t, container.Command, "the image's entry point is the command")
			lines[under+", container "+container.Name] = container.Args
		}
	}
	words := strings.Fields(readUnit(t)["ExecStart"][0])
	require.Equal(t, "pod-pacemaker", filepath.Base(words[0]))
	lines["systemd unit"] = words[1 : len(words)-1]
	require.Equal(t, "$EXTRA_ARGS", words[len(words)-1])

	for name, args := range lines {
		out, err := exec.CommandContext(t.Context(), daemon, append(args, "--help")...).CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		require.Contains(t, string(out), args[0], name)
	}
	out, err := exec.CommandContext(t.Context(), daemon, "run", "--no-such-flag", "--help").CombinedOutput()
	require.Error(t, err, "%s", out)
}
