//go:build e2e

package lab

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
)

func TestRuntimeRunsAPod(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute)
	defer cancel()
	cache, err := CacheDir()
	require.NoError(t, err)
	binaries, err := BuildRuntime(ctx, cache, build.PlainProgress(os.Stdout))
	require.NoError(t, err)
	r, err := StartRuntime(ctx, RuntimeOptions{Binaries: binaries})
	require.NoError(t, err)
	defer r.Stop(ctx)
	config := r.SandboxConfig("default", "one", "uid-one")
	sandbox, err := r.CRI().RunPodSandbox(ctx, &runtimeapi.RunPodSandboxRequest{Config: config})
	require.NoError(t, err, r.Containerd.Tail(20))
	container, err := r.CRI().CreateContainer(ctx, &runtimeapi.CreateContainerRequest{
		PodSandboxId: sandbox.PodSandboxId, SandboxConfig: config,
		Config: &runtimeapi.ContainerConfig{
			Metadata: &runtimeapi.ContainerMetadata{Name: "herd"},
			Image:    &runtimeapi.ImageSpec{Image: HerdImage},
			Args:     []string{"--cpu-seconds", "0.2"},
			LogPath:  "herd.log",
			Linux:    &runtimeapi.LinuxContainerConfig{},
		},
	})
	require.NoError(t, err)
	_, err = r.CRI().StartContainer(ctx, &runtimeapi.StartContainerRequest{ContainerId: container.ContainerId})
	require.NoError(t, err)
	require.Eventually(t, func() bool {
		log, _ := os.ReadFile(config.LogDirectory + "/herd.log")
		return strings.Contains(string(log), "ready")
	}, 20*time.Second, 500*time.Millisecond)
	require.NoError(t, r.Stop(ctx))
	left, err := Remains(r.Run)
	require.NoError(t, err)
	require.Empty(t, left)
}
