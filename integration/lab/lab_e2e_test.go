//go:build e2e

package lab

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
)

// testTimeout bounds waits for expected events. No verdict depends on it.
const testTimeout = 3 * time.Minute

// built builds missing programs. The cache makes it fast.
func built(t *testing.T) Binaries {
	t.Helper()
	cache, err := CacheDir()
	require.NoError(t, err)
	binaries, err := Build(t.Context(), cache, build.PlainProgress(os.Stderr))
	require.NoError(t, err)
	return binaries
}

// eventually waits until holds returns nil.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	deadline := time.Now().Add(testTimeout)
	for {
		err := holds()
		if err == nil {
			return
		}
		require.False(t, time.Now().After(deadline), "waiting for %s: %v", what, err)
		time.Sleep(50 * time.Millisecond)
	}
}

// requireNothingLeft waits until nothing of the run is left.
func requireNothingLeft(t *testing.T, run Run) {
	t.Helper()
	eventually(t, "nothing to remain", func() error {
		left, err := Remains(run)
		require.NoError(t, err)
		if len(left) > 0 {
			return fmt.Errorf("remaining: %q", left)
		}
		return nil
	})
}

// stopOnce stops a run, unless it was already stopped.
func stopOnce(r *Runtime) error {
	if alive, err := r.Alive(); !alive {
		return err
	}
	return r.Stop(context.Background())
}

// startPod starts a pod of one herd container through CRI, as a kubelet would.
func startPod(t *testing.T, r *Runtime, name string, args ...string) *runtimeapi.PodSandboxConfig {
	t.Helper()
	config := r.SandboxConfig("default", name, "uid-"+name)
	sandbox, err := r.CRI().RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: config})
	require.NoError(t, err, r.Containerd.Tail(20))
	container, err := r.CRI().CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.PodSandboxId, SandboxConfig: config,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "herd"},
			Image:    &runtimeapi.ImageSpec{Image: HerdImage},
			Args:     args,
			LogPath:  "herd.log",
			Linux:    &runtimeapi.LinuxContainerConfig{},
		},
	})
	require.NoError(t, err)
	_, err = r.CRI().StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: container.ContainerId})
	require.NoError(t, err)
	return config
}
