package demo

import (
	"archive/tar"
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// shellHerd is a herd program that prints the CPUs on which it runs, and is ready at once.
const shellHerd = `#!/bin/sh
echo started 17
grep Cpus_allowed_list /proc/self/status
echo ready 18
exec sleep 1000
`

// newTestNode is a processNode with a shell script as the herd's program.
func newTestNode(t *testing.T) *processNode {
	t.Helper()
	cpus, err := usableCPUs(1)
	require.NoError(t, err)
	dir := t.TempDir()
	n := &processNode{herd: NewHerd(cpus), dir: dir, program: filepath.Join(dir, "herd")}
	require.NoError(t, os.WriteFile(n.program, []byte(shellHerd), 0o755))
	n.runtime, err = runtimetest.New(runtimetest.Options{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, n.runtime.Start())
	t.Cleanup(func() {
		assert.NoError(t, n.close(context.WithoutCancel(t.Context())))
		assert.NoDirExists(t, dir)
	})
	return n
}

func startContainer(t *testing.T, n *processNode) container {
	t.Helper()
	p, err := n.runPod(t.Context(), "herd-1", "", 0)
	require.NoError(t, err)
	c, err := p.create(t.Context(), 0)
	require.NoError(t, err)
	require.NoError(t, c.start(t.Context()))
	return c
}

func TestAProcessIsAContainer(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	c := startContainer(t, n)
	var text string
	require.Eventually(t, func() bool {
		var err error
		text, err = c.output()
		_, ready := marks(text)
		return err == nil && !ready.IsZero()
	}, time.Minute, 10*time.Millisecond)
	assert.Contains(t, text, "Cpus_allowed_list:\t"+n.herd.cpuset()+"\n", "the process is confined to the herd's CPUs")
	_, exited, err := c.exited(t.Context())
	require.NoError(t, err)
	assert.False(t, exited)

	require.NoError(t, c.stop(t.Context()))
	at, exited, err := c.exited(t.Context())
	require.NoError(t, err)
	assert.True(t, exited)
	assert.WithinDuration(t, time.Now(), at, time.Minute)
	assert.Zero(t, c.cpu())
}

func TestClearEndsAllPods(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	c := startContainer(t, n)
	require.NoError(t, n.clear(t.Context()))
	assert.Empty(t, n.runtime.Pods())
	_, exited, err := c.exited(t.Context())
	require.NoError(t, err)
	assert.True(t, exited)
	startContainer(t, n) // the cleared node runs new pods
}

func TestTheDaemonThatEndsAtOnceShowsWhy(t *testing.T) {
	t.Parallel()
	n := newTestNode(t)
	n.bin.daemon = filepath.Join(n.dir, "daemon")
	require.NoError(t, os.WriteFile(n.bin.daemon, []byte("#!/bin/sh\necho it cannot work >&2\nexit 2\n"), 0o755))
	n.bin.gate = n.bin.daemon // the daemon ends before it needs the gate
	_, err := n.startDaemon(t.Context(), 2)
	require.ErrorContains(t, err, "daemon ended at once; its last lines:\nit cannot work")
}

func TestAChildIsStopped(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	c, err := startChild([]string{"/bin/sh", "-c", "echo hello; exec sleep 1000"}, log)
	require.NoError(t, err)
	ready := func(context.Context) error {
		if !strings.Contains(c.tail(), "hello") {
			return io.EOF
		}
		return nil
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	require.NoError(t, c.await(ctx, ready))
	require.NoError(t, c.stop(ctx))
	require.NoError(t, c.stop(ctx), "stopping an ended child")
	_, err = startChild([]string{"/nowhere/to/be/found"}, log)
	assert.Error(t, err)
}

func TestExtract(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	image, program := filepath.Join(dir, "image.tar"), filepath.Join(dir, "herd")
	writeImage(t, image, "herd", "the program")
	require.NoError(t, extract(image, "herd", program))
	content, err := os.ReadFile(program)
	require.NoError(t, err)
	assert.Equal(t, "the program", string(content))
	info, err := os.Stat(program)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode().Perm())
	require.ErrorContains(t, extract(image, "other", filepath.Join(dir, "other")), "looking for other")
}

func writeImage(t *testing.T, path, file, content string) {
	t.Helper()
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	require.NoError(t, w.WriteHeader(&tar.Header{Name: file, Mode: 0o755, Size: int64(len(content))}))
	_, err := io.WriteString(w, content)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(files.Bytes())), nil })
	require.NoError(t, err)
	img, err := mutate.AppendLayers(empty.Image, layer)
	require.NoError(t, err)
	tag, err := name.NewTag("example.local/herd:1")
	require.NoError(t, err)
	require.NoError(t, tarball.WriteToFile(path, tag, img))
}
