package main

import (
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHelp(t *testing.T) {
	t.Parallel()
	for name, args := range map[string][]string{
		"help":                     {"--help"},
		"help-run":                 {"run", "--help"},
		"help-status":              {"status", "--help"},
		"help-why":                 {"why", "--help"},
		"help-costs":               {"costs", "--help"},
		"help-alive":               {"alive", "--help"},
		"help-check":               {"check", "--help"},
		"help-preflight":           {"preflight", "--help"},
		"help-copy-kubelet-config": {"copy-kubelet-config", "--help"},
		"help-metrics-proxy":       {"metrics-proxy", "--help"},
	} {
		assertGolden(t, name, says(t, args...))
	}
}

func TestWithoutArgumentsItShowsTheUsage(t *testing.T) {
	t.Parallel()
	code, bare, _ := call(t)
	require.Zero(t, code)
	_, help, _ := call(t, "--help")
	assert.Equal(t, help, bare)
}

func TestWrongUsageIsExitCode64(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"stats"}, "pod-pacemaker: unknown command \"stats\" for \"pod-pacemaker\"; did you mean status?\n'pod-pacemaker --help' shows how to use it.\n"},
		{[]string{"xyzzy"}, "pod-pacemaker: unknown command \"xyzzy\" for \"pod-pacemaker\"\n'pod-pacemaker --help' shows how to use it.\n"},
		{[]string{"--nonsense"}, "pod-pacemaker: unknown flag: --nonsense\n'pod-pacemaker --help' shows how to use it.\n"},
		{[]string{"status", "web"}, "pod-pacemaker: unknown command \"web\" for \"pod-pacemaker status\"\n'pod-pacemaker status --help' shows how to use it.\n"},
		{[]string{"status", "-o", "yaml"}, "pod-pacemaker: invalid argument \"yaml\" for \"-o, --output\" flag: must be text or json\n'pod-pacemaker status --help' shows how to use it.\n"},
		{[]string{"why"}, "pod-pacemaker: NAMESPACE/POD is missing\n'pod-pacemaker why --help' shows how to use it.\n"},
		{[]string{"why", "web-0"}, "pod-pacemaker: \"web-0\": must be NAMESPACE/POD, like default/web-0\n'pod-pacemaker why --help' shows how to use it.\n"},
		{[]string{"why", "a/b/c"}, "pod-pacemaker: \"a/b/c\": must be NAMESPACE/POD, like default/web-0\n'pod-pacemaker why --help' shows how to use it.\n"},
		{[]string{"check"}, "pod-pacemaker: FILE is missing\n'pod-pacemaker check --help' shows how to use it.\n"},
		{[]string{"why", "a/b", "c/d"}, "pod-pacemaker: \"c/d\": only one NAMESPACE/POD is accepted\n'pod-pacemaker why --help' shows how to use it.\n"},
		{[]string{"check", "x", "--cores", "0"}, "pod-pacemaker: --cores: 0: must be at least 1\n"},
		{[]string{"copy-kubelet-config", "x"}, "pod-pacemaker: --to is missing: the file to write\n"},
		{[]string{"copy-kubelet-config", "--to", "x"}, "pod-pacemaker: CANDIDATE is missing\n'pod-pacemaker copy-kubelet-config --help' shows how to use it.\n"},
		{[]string{"metrics-proxy", "--listen", ""}, "pod-pacemaker: --listen: \"\": must be HOST:PORT with a port from 1 to 65535\n"},
		{[]string{"metrics-proxy", "--upstream", "daemon"}, "pod-pacemaker: --upstream: \"daemon\": must be HOST:PORT with a port from 1 to 65535\n"},
		{[]string{"run", "--gate", "perhaps"}, "pod-pacemaker: invalid argument \"perhaps\" for \"--gate\" flag: must be auto, always or never\n'pod-pacemaker run --help' shows how to use it.\n"},
		{[]string{"run", "--gate-timeout", "100"}, "pod-pacemaker: invalid argument \"100\" for \"--gate-timeout\" flag: time: missing unit in duration \"100\"\n'pod-pacemaker run --help' shows how to use it.\n"},
	} {
		assert.Equal(t, c.want, fails(t, exitInvalid, c.args...), c.args)
	}
}

func TestVersion(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "pod-pacemaker dev (commit unknown, "+runtime.Version()+", "+runtime.GOOS+"/"+runtime.GOARCH+")\n", says(t, "--version"))
}

func TestCompletion(t *testing.T) {
	t.Parallel()
	_, stdout, _ := call(t, "__complete", "run", "--refuse-at", "s")
	assert.Contains(t, stdout, "sandbox\n")
	for line, want := range map[string]string{"why": ":4", "status": ":4", "check": ":0", "convert": ":0", "run --config": ":0"} { // 4: no files
		_, stdout, _ = call(t, append(append([]string{"__complete"}, strings.Fields(line)...), "")...)
		assert.Equal(t, want+"\n", stdout, line)
	}
}
