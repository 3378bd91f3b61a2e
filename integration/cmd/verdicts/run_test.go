package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/verdicts"
)

// scenarios are the sources of three scenarios for the runs of the tests below. One skips itself: that is no verdict of
// having passed, so the run must fail for it.
const scenarios = `package e2e

import (
	"os"
	"testing"
)

func TestPasses(t *testing.T) { t.Run("part", func(t *testing.T) { t.Logf("%s: 3 pods", t.Name()) }) }

func TestSkips(t *testing.T) { t.Skip("no") }

func TestFails(t *testing.T) {
	if _, err := os.Stat("mended"); err != nil {
		t.Fatal("not mended")
	}
}
`

// aRepository makes a repository with a package of scenarios the working directory.
func aRepository(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	require.NoError(t, os.Mkdir("e2e", 0o700))
	for file, text := range map[string]string{"go.mod": "module example.com/m\n\ngo 1.26\n", ".gitignore": "mended\n", "e2e/x_test.go": scenarios} {
		require.NoError(t, os.WriteFile(filepath.FromSlash(file), []byte(text), 0o600))
	}
	for _, args := range [][]string{{"init", "-q"}, {"add", "-A"}, {"-c", "user.name=n", "-c", "user.email=e", "commit", "-q", "-m", "m"}} {
		out, err := exec.CommandContext(t.Context(), "git", args...).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
}

func TestEachScenarioGetsAVerdictAndWhatPassedIsNotRunAgain(t *testing.T) {
	aRepository(t)
	out := filepath.Join(t.TempDir(), "out")
	var shown bytes.Buffer
	r := run{show: &shown, out: out, pkg: "./e2e", timeout: time.Minute, part: 1, parts: 1}
	require.ErrorContains(t, r.all(t.Context()), "not passed: TestSkips, TestFails")
	assert.Contains(t, shown.String(), "not mended")
	all, err := verdicts.Read(out)
	require.NoError(t, err)
	require.Len(t, all, 3)
	assert.Equal(t, "TestPasses", all[0].Scenario)
	assert.Equal(t, []string{"3 pods"}, all[0].Figures)
	assert.True(t, all[0].Passed)
	assert.False(t, all[1].Passed)
	assert.NotEmpty(t, all[0].Commit)

	require.NoError(t, os.WriteFile("e2e/mended", nil, 0o600))
	require.ErrorContains(t, r.all(t.Context()), "not passed: TestSkips")
	all, err = verdicts.Read(out)
	require.NoError(t, err)
	assert.Len(t, all, 5, "TestPasses did not run again")
	assert.True(t, verdicts.Latest(all)["TestFails"].Passed)

	require.NoError(t, os.WriteFile("e2e/new_test.go", []byte("package e2e\n"), 0o600))
	require.NoError(t, exec.CommandContext(t.Context(), "git", "add", "-A").Run())
	r.match = "Passes|Fails"
	require.NoError(t, r.all(t.Context()))
	all, err = verdicts.Read(out)
	require.NoError(t, err)
	assert.Len(t, all, 7, "the sources have changes")
}

func TestVerdictsOfARunThatIsOver(t *testing.T) {
	aRepository(t)
	require.NoError(t, os.MkdirAll("e2e/part", 0o700))
	require.NoError(t, os.WriteFile("e2e/part/y_test.go", []byte("package part\n\nimport \"testing\"\n\nfunc TestOfAnotherPackage(*testing.T) {}\n"), 0o600))
	events, out := filepath.Join(t.TempDir(), "events"), filepath.Join(t.TempDir(), "out")
	written, err := exec.CommandContext(t.Context(), "go", "test", "-json", "./...").Output()
	var failed *exec.ExitError
	require.ErrorAs(t, err, &failed)
	require.NoError(t, os.WriteFile(events, written, 0o600))
	require.NoError(t, start(t.Context(), []string{"-events", events, "-out", out}))
	all, err := verdicts.Read(out)
	require.NoError(t, err)
	require.Len(t, all, 3)
	latest := verdicts.Latest(all)
	assert.Equal(t, []string{"3 pods"}, latest["TestPasses"].Figures)
	assert.True(t, latest["TestPasses"].Passed)
	assert.False(t, latest["TestFails"].Passed)
	assert.False(t, latest["TestSkips"].Passed)

	require.NoError(t, os.WriteFile(events, []byte("no event\n"), 0o600))
	require.ErrorContains(t, start(t.Context(), []string{"-events", events, "-out", out}), events)
}

func TestAShardThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for _, shard := range []string{"0/2", "3/2", "x", "1"} {
		require.ErrorContains(t, start(t.Context(), []string{"-shard", shard, "-out", "x"}), "-shard "+shard)
	}
	require.ErrorContains(t, start(t.Context(), nil), "-out")
}
