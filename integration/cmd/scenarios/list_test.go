package main

import (
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/verdicts"
)

// write writes a file with a scenario into a new folder.
func write(t *testing.T, text string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "herd_test.go"), []byte(text), 0o600))
	return folder
}

func TestBuildTagsDecideWhichTargetRunsAScenario(t *testing.T) {
	t.Parallel()
	const rest = "\n\npackage e2e\n\nfunc TestMain() {}\n\n// TestHerd paces. And more.\nfunc TestHerd() {}\n"
	for tags, runBy := range map[string]string{"e2e": "| `e2e` |", "e2e && full": "| `e2e-full` |"} {
		folder := write(t, "//go:build "+tags+rest)
		require.Error(t, run(folder, true), "the list does not exist yet")
		require.NoError(t, run(folder, false))
		require.NoError(t, run(folder, true))
		text, err := os.ReadFile(filepath.Join(folder, file))
		require.NoError(t, err)
		assert.Contains(t, string(text), "| [`TestHerd`](herd_test.go) "+runBy+" not yet | TestHerd paces. |\n")
		assert.NotContains(t, string(text), "TestMain")
	}
	all, err := scenarios(write(t, "//go:build e2e && record"+rest))
	require.NoError(t, err)
	assert.Empty(t, all, "a tool")
}

func TestAListThatIsNotCurrentIsRefused(t *testing.T) {
	t.Parallel()
	folder := write(t, "//go:build e2e\n\npackage e2e\n\n// It paces.\nfunc TestHerd() {}\n")
	require.NoError(t, run(folder, false))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "new_test.go"), []byte("//go:build e2e\n\npackage e2e\n\n// It waits.\nfunc TestNew() {}\n"), 0o600))
	require.ErrorContains(t, run(folder, true), "make generate")
}

func TestTheListSaysWhenAScenarioPassed(t *testing.T) {
	t.Parallel()
	folder, at := write(t, "//go:build e2e\n\npackage e2e\n\n// It paces.\nfunc TestHerd() {}\n"), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for i, ok := range []bool{true, true, false} {
		require.NoError(t, verdicts.Append(filepath.Join(folder, ended), verdicts.Verdict{Scenario: "TestHerd", Passed: ok, Seconds: 4.6, Commit: "c" + strconv.Itoa(i), At: at.AddDate(0, 0, i)}))
	}
	require.NoError(t, run(folder, false))
	text, err := os.ReadFile(filepath.Join(folder, file))
	require.NoError(t, err)
	assert.Contains(t, string(text), "| `e2e` | 2026-01-03, c1, 5 s | It paces. |\n")
}

func TestWhatFollowsTheListIsKept(t *testing.T) {
	t.Parallel()
	folder := write(t, "//go:build e2e\n\npackage e2e\n\n// It paces.\nfunc TestHerd() {}\n")
	require.NoError(t, os.WriteFile(filepath.Join(folder, file), []byte("an old list\n"+end+"\nby hand\n"), 0o600))
	require.NoError(t, run(folder, false))
	require.NoError(t, run(folder, true))
	text, err := os.ReadFile(filepath.Join(folder, file))
	require.NoError(t, err)
	assert.NotContains(t, string(text), "old")
	assert.Contains(t, string(text), "| It paces. |\n"+end+"\nby hand\n")
}

func TestAScenarioNeedsACommentAndABuildTag(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, run(write(t, "//go:build e2e\n\npackage e2e\n\nfunc TestHerd() {}\n"), false), "TestHerd has no comment")
	require.ErrorContains(t, run(write(t, "package e2e\n\n// It paces.\nfunc TestHerd() {}\n"), false), "no build constraint")
}
