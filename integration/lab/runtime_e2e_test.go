//go:build e2e

package lab

import (
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// A pod started through CRI burns its CPU time, logs that it is ready, and answers HTTP. It
// survives a kill of containerd, and nothing survives the run.
func TestRuntimeRunsAPod(t *testing.T) {
	r, err := StartRuntime(t.Context(), RuntimeOptions{Binaries: built(t)})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, stopOnce(r)) })
	config := startPod(t, r, "one", "--cpu-seconds", "0.2")
	eventually(t, "the pod to be ready", func() error {
		log, err := os.ReadFile(filepath.Join(config.LogDirectory, "herd.log"))
		if err == nil && !strings.Contains(string(log), "ready ") {
			err = errors.New("its log says: " + string(log))
		}
		return err
	})
	require.Equal(t, "ready\n", get(t, r, podIP(t, r)+":8080"))

	require.NoError(t, r.Containerd.Kill(t.Context()))
	require.NoError(t, r.Containerd.Start(t.Context()))
	require.Equal(t, "ready\n", get(t, r, podIP(t, r)+":8080"), "the pod should have outlived containerd")

	require.NoError(t, stopOnce(r))
	left, err := Remains(r.Run)
	require.NoError(t, err)
	require.Empty(t, left)
}

// podIP returns the address of the only pod.
func podIP(t *testing.T, r *Runtime) string {
	t.Helper()
	all, err := r.CRI().ListPodSandbox(t.Context(), &runtimeapi.ListPodSandboxRequest{})
	require.NoError(t, err)
	require.Len(t, all.Items, 1)
	reply, err := r.CRI().PodSandboxStatus(t.Context(), &runtimeapi.PodSandboxStatusRequest{PodSandboxId: all.Items[0].Id})
	require.NoError(t, err)
	return reply.Status.Network.Ip
}

// get requests an address inside the run's network by HTTP.
func get(t *testing.T, r *Runtime, inside string) string {
	t.Helper()
	outside, err := r.Forward(t.Context(), inside)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+outside, nil)
	require.NoError(t, err)
	reply, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return string(body)
}
