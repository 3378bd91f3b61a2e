package deploy

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
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
func TestCommandTakesTheArgumentsOfTheUnit(t *testing.T) {
	t.Parallel()
	daemon := buildDaemon(t)

	words := strings.Fields(readUnit(t)["ExecStart"][0])
	require.Equal(t, "pod-pacemaker", filepath.Base(words[0]))
	require.Equal(t, "$EXTRA_ARGS", words[len(words)-1])

	out, err := exec.CommandContext(t.Context(), daemon, append(words[1:len(words)-1], "--help")...).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), words[1])
	out, err = exec.CommandContext(t.Context(), daemon, "run", "--no-such-flag", "--help").CombinedOutput()
	require.EqualError(t, err, "exit status "+readUnit(t)["RestartPreventExitStatus"][0], "%s", out)
}
