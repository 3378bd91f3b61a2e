package demo

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/report"
	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

func TestFindBinaries(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := findBinaries(dir)
	require.ErrorContains(t, err, "run make build")
	for _, name := range []string{"pod-pacemaker", "pacemaker-gate"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o755))
	}
	b, err := findBinaries(dir)
	require.NoError(t, err)
	assert.Equal(t, binaries{daemon: filepath.Join(dir, "pod-pacemaker"), gate: filepath.Join(dir, "pacemaker-gate")}, b)
}

func TestTheDaemonsConfigIsValid(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "pp")
	checkout := filepath.Join(t.TempDir(), "checkout") // a folder that other users can write
	require.NoError(t, os.Mkdir(checkout, 0o755))
	require.NoError(t, os.Chmod(checkout, 0o777))
	gate := filepath.Join(checkout, "pacemaker-gate")
	require.NoError(t, os.WriteFile(gate, []byte("#!"), 0o755))
	var d daemon
	var err error
	for range 2 {
		d, err = newDaemon(binaries{daemon: "/bin/pp", gate: gate}, dir, "/run/nri.sock", 3)
		require.NoError(t, err)
	}
	assert.Equal(t, "/bin/pp", d.args[0])
	at := slices.Index(d.args, "--gate-path")
	require.Positive(t, at)
	own := d.args[at+1]
	assert.Equal(t, dir, filepath.Dir(own), "the folder of the copy, which other users cannot write")
	info, err := os.Stat(own)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode()&^0o022)
	config, err := crd.Load(filepath.Join(dir, "config.yaml"))
	require.NoError(t, err)
	assert.Equal(t, int32(3), *config.Config.Spec.ThrottleConfig.MaxConcurrent.Value)
	require.Error(t, d.ready(t.Context()), "no daemon listens yet")
}

func TestReportFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	_, err := newReportFile(filepath.Join(dir, "missing", "r.html"), binaries{})
	require.ErrorContains(t, err, "--report")

	path := filepath.Join(dir, "r.html")
	require.NoError(t, os.WriteFile(path, []byte("of an earlier run"), 0o644))
	discarded, err := newReportFile(path, binaries{})
	require.NoError(t, err)
	discarded.discard()
	assert.Equal(t, []string{"r.html"}, names(t, dir))

	written, err := newReportFile(path, binaries{})
	require.NoError(t, err)
	got, err := written.write(report.Page{Title: "of this run", Ideal: time.Second, Runs: []timeline.Run{{Length: time.Second}}})
	require.NoError(t, err)
	written.discard()
	assert.Equal(t, path, got)
	assert.Equal(t, []string{"r.html", "r.svg"}, names(t, dir))
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Contains(t, string(content), "of this run")
}

func TestTheReportStandsBesideBin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r, err := newReportFile("", binaries{daemon: filepath.Join(dir, "bin", "pod-pacemaker")})
	require.NoError(t, err)
	defer r.discard()
	assert.Equal(t, filepath.Join(dir, "pod-pacemaker-demo.html"), r.path)
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	var all []string
	for _, e := range entries {
		all = append(all, e.Name())
	}
	return all
}
