//go:build e2e

package e2e

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// A container that a later plugin rejects, or that runc cannot make, holds no slot: the next pod starts while kubelet
// tries again and again. Nothing else could free the slot while the scenario lasts.
func TestATryThatEndedHoldsNoSlot(t *testing.T) {
	d := startDaemon(t)
	d.configure(t, "{startTimeout: 1h, maxWait: 1h, throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns := namespace(t)
	rejects(t, ns, "rejected")
	for name, spec := range map[string]corev1.PodSpec{"rejected": herdPod(0), "not-made": herdPod(0, badMount(t))} {
		t.Run(name, func(t *testing.T) {
			begin := time.Now()
			createPod(t, ns, name, spec)
			eventually(t, "kubelet reports that it failed", func() bool { return cannotStart(getPod(t, ns, name)) })
			failed := time.Now()
			createPod(t, ns, "beside-"+name, herdPod(0.1))
			eventually(t, "the next pod is ready", func() bool { return isReady(t, ns, "beside-"+name) })
			figure(t, "%s: kubelet reported it after %.1f s, and the next pod was ready %.1f s later", name, failed.Sub(begin).Seconds(), time.Since(failed).Seconds())
			assert.True(t, slices.ContainsFunc(d.status(t).Ended, func(p admin.Pod) bool {
				return p.Namespace == ns && p.Name == name && p.Reason == reasons.NotMade
			}), "the daemon says how its start ended")
		})
	}
}

// cannotStart reports whether kubelet says that the runtime could not make or start a container of the pod.
func cannotStart(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.ContainerStatuses, func(s corev1.ContainerStatus) bool {
		w := s.State.Waiting
		return w != nil && (w.Reason == "CreateContainerError" || w.Reason == "RunContainerError" || w.Reason == "CrashLoopBackOff")
	})
}

// badMount gives the pod a file of a volume, by its subPath, where its image has a folder: runc refuses that before it runs
// a hook.
func badMount(t *testing.T) shape {
	t.Helper()
	dir := newLatch(t).dir
	require.NoError(t, os.WriteFile(filepath.Join(dir, "file"), nil, 0o600))
	return func(spec *corev1.PodSpec) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "bad", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: dir}}})
		c := &spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "bad", MountPath: "/sys/kernel", SubPath: "file"})
	}
}

// rejecting is an NRI plugin that rejects containers.
type rejecting struct {
	rejects func(pod *api.PodSandbox) bool
}

func (r rejecting) CreateContainer(_ context.Context, pod *api.PodSandbox, _ *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	if r.rejects(pod) {
		return nil, nil, errors.New("no CPUs are left for it")
	}
	return nil, nil, nil
}

// rejects runs a plugin after the daemon's that rejects the containers of a pod, until the test ends.
func rejects(t *testing.T, namespace, name string) {
	t.Helper()
	rejectsAny(t, func(pod *api.PodSandbox) bool { return pod.GetNamespace() == namespace && pod.GetName() == name })
}

// rejectsAny rejects the containers of all pods for which of returns true, as rejects does. The plugin ends with containerd at the latest.
func rejectsAny(t *testing.T, of func(pod *api.PodSandbox) bool) {
	t.Helper()
	plugin, err := stub.New(rejecting{of}, stub.WithPluginName("rejects"), stub.WithPluginIdx("90"), stub.WithSocketPath(node.NRISocket),
		stub.WithOnClose(func() {})) // else the end of containerd ends this program
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(t, plugin.Start(ctx))
	var running sync.WaitGroup
	running.Go(plugin.Wait)
	t.Cleanup(func() { plugin.Stop(); running.Wait(); cancel() })
}
