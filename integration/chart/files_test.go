package chart

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// copied are the files of the repository that the chart carries, by their folder in deploy and in
// the chart's files. They are copies, because not every tool that packs a chart follows links.
var copied = map[string]string{
	"crds":      "pod-pacemaker.io_*.yaml",
	"alerts":    "pod-pacemaker.yaml",
	"dashboard": "pod-pacemaker.json",
}

func TestChartFilesMatchTheRepository(t *testing.T) {
	t.Parallel()
	var want []string
	for folder, pattern := range copied {
		sources, err := filepath.Glob(Repository("deploy", folder, pattern))
		require.NoError(t, err)
		require.NotEmpty(t, sources, folder)
		for _, source := range sources {
			content, err := os.ReadFile(source)
			require.NoError(t, err)
			target := filepath.Join(Dir(), "files", folder, filepath.Base(source))
			if *update {
				require.NoError(t, os.MkdirAll(filepath.Dir(target), 0o755))
				require.NoError(t, os.WriteFile(target, content, 0o644))
			}
			have, err := os.ReadFile(target)
			require.NoError(t, err, "`make generate` writes it")
			require.Equal(t, string(content), string(have), "%s: `make generate` writes it", target)
			want = append(want, target)
		}
	}
	var have []string
	require.NoError(t, filepath.WalkDir(Dir(), func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		require.True(t, entry.IsDir() || entry.Type().IsRegular(), "%s is a link, or another file that charts cannot carry", path)
		if inside, err := filepath.Rel(filepath.Join(Dir(), "files"), path); err == nil && !entry.IsDir() && filepath.IsLocal(inside) {
			have = append(have, path)
		}
		return nil
	}))
	require.ElementsMatch(t, want, have)
}
