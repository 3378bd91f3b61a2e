package plugin

import (
	"context"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/containerd/nri/pkg/stub"
	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// emptyPlugin has the subscriptions of the daemon, and does nothing.
type emptyPlugin struct{}

func (emptyPlugin) Synchronize(context.Context, []*api.PodSandbox, []*api.Container) ([]*api.ContainerUpdate, error) {
	return nil, nil
}
func (emptyPlugin) RunPodSandbox(context.Context, *api.PodSandbox) error    { return nil }
func (emptyPlugin) StopPodSandbox(context.Context, *api.PodSandbox) error   { return nil }
func (emptyPlugin) RemovePodSandbox(context.Context, *api.PodSandbox) error { return nil }
func (emptyPlugin) CreateContainer(context.Context, *api.PodSandbox, *api.Container) (*api.ContainerAdjustment, []*api.ContainerUpdate, error) {
	return nil, nil, nil
}
func (emptyPlugin) PostCreateContainer(context.Context, *api.PodSandbox, *api.Container) error {
	return nil
}
func (emptyPlugin) PostStartContainer(context.Context, *api.PodSandbox, *api.Container) error {
	return nil
}
func (emptyPlugin) StopContainer(context.Context, *api.PodSandbox, *api.Container) ([]*api.ContainerUpdate, error) {
	return nil, nil
}
func (emptyPlugin) RemoveContainer(context.Context, *api.PodSandbox, *api.Container) error {
	return nil
}

// quietStub silences the stub of the empty plugin.
type quietStub struct{}

func (quietStub) Debugf(context.Context, string, ...any) {}
func (quietStub) Infof(context.Context, string, ...any)  {}
func (quietStub) Warnf(context.Context, string, ...any)  {}
func (quietStub) Errorf(context.Context, string, ...any) {}

// emptyRuntime is a runtime with nothing but an empty plugin.
func emptyRuntime(b *testing.B) *runtimetest.Runtime {
	b.Helper()
	dir, err := os.MkdirTemp("", "empty")
	require.NoError(b, err)
	rt, err := runtimetest.New(runtimetest.Options{Dir: dir})
	require.NoError(b, err)
	ctx, cancel := context.WithCancel(context.Background())
	require.NoError(b, rt.Start())
	st, err := stub.New(emptyPlugin{}, stub.WithPluginName("empty"), stub.WithPluginIdx("05"),
		stub.WithSocketPath(rt.Socket()), stub.WithLogger(quietStub{}))
	require.NoError(b, err)
	ran := make(chan error, 1)
	go func() { ran <- st.Run(ctx) }()
	b.Cleanup(func() {
		cancel()
		require.ErrorIs(b, <-ran, context.Canceled)
		require.NoError(b, rt.Stop())
		require.NoError(b, os.RemoveAll(dir))
	})
	require.NoError(b, rt.WaitPlugin(ctx, "empty"))
	return rt
}

// admit creates a pod with its sandbox and first container, where a start is decided, and removes the pod. It returns the
// time until the container may start, and the time until the pod is removed.
func admit(b *testing.B, rt *runtimetest.Runtime, uid string) (admission, life time.Duration) {
	b.Helper()
	ctx := b.Context()
	begin := time.Now()
	pod, err := rt.RunPod(ctx, runtimetest.PodSpec{Namespace: "default", Name: "pod", UID: uid})
	require.NoError(b, err)
	_, err = pod.CreateContainer(ctx, runtimetest.ContainerSpec{Name: "app", Args: []string{"true"}})
	require.NoError(b, err)
	admission = time.Since(begin)
	require.NoError(b, pod.Stop(ctx))
	require.NoError(b, pod.Remove(ctx))
	return admission, time.Since(begin)
}

// times are the durations of one plugin's pods.
type times struct{ admissions, lives []time.Duration }

func (t *times) admit(b *testing.B, rt *runtimetest.Runtime, uid string) {
	b.Helper()
	admission, life := admit(b, rt, uid)
	t.admissions, t.lives = append(t.admissions, admission), append(t.lives, life)
}

// median returns the median, which a pause of a busy machine does not change.
func median(all []time.Duration) time.Duration {
	slices.Sort(all)
	return all[len(all)/2]
}

// BenchmarkAdmission compares the admission of a pod that need not wait with that of a plugin that does nothing. Both run
// in turns, so that other load of the machine affects both.
func BenchmarkAdmission(b *testing.B) {
	for _, c := range []struct{ name, config string }{
		{"NoLimit", noLimit},
		{"LimitNotHit", "spec: {throttleConfig: {maxConcurrent: {value: 1000}, rateLimit: {fillFactor: 1ms, burst: 1000}}}"},
	} {
		b.Run(c.name, func(b *testing.B) {
			n := newNode(b, c.config)
			n.options.Log.SetLevel(logrus.InfoLevel)
			empty := emptyRuntime(b)
			var ours, theirs times
			known := podwatch.Pod{
				Namespace: "default", Name: "pod", RestartPolicy: "Always", Probed: true,
				Containers: containersNamed(podwatch.App, "app"),
			}
			for oursFirst := true; b.Loop(); oursFirst = !oursFirst {
				known.UID = runtimetest.NewUID()
				n.pods.tell(known.UID, func(p *podwatch.Pod) { *p = known })
				if oursFirst {
					ours.admit(b, n.rt, known.UID)
					theirs.admit(b, empty, known.UID)
				} else {
					theirs.admit(b, empty, known.UID)
					ours.admit(b, n.rt, known.UID)
				}
				n.pods.remove(known.UID)
			}
			our, their := median(ours.admissions), median(theirs.admissions)
			b.ReportMetric(float64(our)/float64(their), "x-empty-plugin")
			b.ReportMetric(float64(median(ours.lives))/float64(median(theirs.lives)), "x-empty-plugin-whole-life")
			b.ReportMetric(float64(our.Microseconds()), "us/admission")
			b.ReportMetric(float64(their.Microseconds()), "us/empty-admission")
		})
	}
}
