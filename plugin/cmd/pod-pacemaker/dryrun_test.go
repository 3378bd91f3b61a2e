package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin"
)

func nriSocket(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, "nri.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	return path
}

func TestDryRunOnANodeThatHasEverything(t *testing.T) {
	t.Parallel()
	dir, gate, config := shortDir(t), hook(t, "#!"), file(t, twoAtATime)
	require.NoError(t, os.Chmod(gate, 0o755))
	code, stdout, stderr := call(t, "run", "--dry-run", "--node-name=worker-3", "--config="+config,
		"--run-dir="+dir, "--nri-socket="+nriSocket(t, dir), "--gate-path="+gate, "--http=")
	assert.Zero(t, code, stderr)
	assert.Equal(t, strings.Join([]string{
		"pod-pacemaker dev, to pace the pods of worker-3, standalone:",
		`  ok  config   ` + config + `: "two-at-a-time": 2 at a time; a pod waits 10m at most, a start counts for 5m at most`,
		"  ok  runtime  " + dir + "/nri.sock is there",
		"  ok  gate     " + gate + ", up to 100s for each wait",
		"  ok  sockets  " + dir + "/gate.sock and " + dir + "/admin.sock",
		"  ok  http     no metrics: --http is empty",
		"",
	}, "\n"), stdout)
	require.NoFileExists(t, dir+"/admin.sock", "a dry run began something")
}

func TestDryRunNamesWhatHinders(t *testing.T) {
	t.Parallel()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	dir := serve(t, &fixed{})
	code, stdout, stderr := call(t, "run", "--dry-run", "--node-name=worker-3", "--run-dir="+dir,
		"--nri-socket="+dir+"/none.sock", "--gate-path="+dir+"/none", "--http="+l.Addr().String())
	assert.Equal(t, exitFailure, code)
	assert.Equal(t, "pod-pacemaker: 5 things to fix before pods are paced as configured\n", stderr)
	for _, want := range []string{
		"  !!  config   none: no pod is held back (--config names a file)\n",
		"  !!  runtime  there is no " + dir + "/none.sock: does containerd run, with NRI enabled? (It is off by default in 1.7: see deploy/containerd/nri.toml)\n",
		"  !!  gate     the hook cannot be used: there is no " + dir + "/none: 'pod-pacemaker install-gate' puts it there; without it pods are refused instead\n",
		"  !!  sockets  another daemon answers at " + dir + "/admin.sock: this one would stand by until that ends\n",
		"  !!  http     listen tcp " + l.Addr().String() + ": bind: address already in use\n",
	} {
		assert.Contains(t, stdout, want)
	}
}

// kubeconfig names an API server that answers every question so.
func kubeconfig(t *testing.T, status int, body string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body)) // a test that misses the answer fails
	}))
	t.Cleanup(server.Close)
	return file(t, "{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], "+
		"clusters: [{name: c, cluster: {server: '"+server.URL+"'}}]}\n")
}

func TestDryRunAsksTheAPIServer(t *testing.T) {
	t.Parallel()
	ask := func(kubeconfig string) finding {
		return apiFinding(t.Context(), plugin.Options{Kubeconfig: kubeconfig, NodeName: "worker-3"})
	}
	list := kubeconfig(t, http.StatusOK, `{"apiVersion":"pod-pacemaker.io/v1alpha1","kind":"PacemakerConfigList","items":[]}`)
	assert.Equal(t, finding{"api", "the API server answers", false}, ask(list))

	noCRD := ask(kubeconfig(t, http.StatusNotFound, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"NotFound","code":404}`))
	assert.True(t, noCRD.hinders)
	assert.Contains(t, noCRD.text, "install the CRDs")

	refused := ask(kubeconfig(t, http.StatusForbidden, `{"apiVersion":"v1","kind":"Status","status":"Failure","reason":"Forbidden","message":"no role","code":403}`))
	assert.Equal(t, finding{"api", "no role", true}, refused)

	assert.True(t, ask(filepath.Join(t.TempDir(), "none")).hinders)

	_, stdout, _ := call(t, "run", "--dry-run", "--node-name=worker-3", "--kubeconfig="+list, "--run-dir="+shortDir(t), "--http=")
	assert.Contains(t, stdout, "  ok  api      the API server answers\n")
}

func TestDryRunLooksWhetherTheRunFolderCanBeMade(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	require.NoError(t, writable(dir))
	require.NoError(t, writable(filepath.Join(dir, "not", "there")))
	require.NoFileExists(t, filepath.Join(dir, "not"))
	plain := file(t, "")
	assert.ErrorContains(t, writable(filepath.Join(plain, "below")), "cannot be written")
}

func TestDryRunOfAWrongConfigurationIsExitCode2(t *testing.T) {
	t.Parallel()
	code, stdout, stderr := call(t, "run", "--dry-run", "--config="+file(t, "kind: Pod\n"), "--http=")
	assert.Equal(t, exitInvalid, code)
	assert.Empty(t, stdout)
	assert.Contains(t, stderr, ": kind: ")
}

func TestFindings(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	assert.Equal(t, finding{"runtime", dir + " is not a socket", true}, runtimeFinding(dir))
	none := gateFinding(plugin.Options{GatePath: dir})
	assert.True(t, none.hinders)
	assert.Contains(t, none.text, dir+" is not an executable file")
	writable := filepath.Join(dir, "writable")
	require.NoError(t, os.WriteFile(writable, nil, 0o700))
	require.NoError(t, os.Chmod(writable, 0o777))
	open := gateFinding(plugin.Options{GatePath: writable})
	assert.True(t, open.hinders, "the daemon would not use it")
	assert.Contains(t, open.text, "can be written by group or others")
	assert.Equal(t, finding{"gate", "not used: --gate-path is empty", false}, gateFinding(plugin.Options{}))
	assert.Equal(t, finding{"gate", "not used: --gate never", false}, gateFinding(plugin.Options{Gate: plugin.GateNever, GatePath: dir}))
	cluster, err := configFinding(plugin.Options{InCluster: true})
	require.NoError(t, err)
	assert.Equal(t, finding{"config", "the PacemakerConfig objects that select this node", false}, cluster)
	fallback, err := configFinding(plugin.Options{InCluster: true, ConfigFile: file(t, twoAtATime)})
	require.NoError(t, err)
	assert.Contains(t, fallback.text, "; where no PacemakerConfig object selects this node")
}
