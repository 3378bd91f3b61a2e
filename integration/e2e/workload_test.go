//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

var names atomic.Int64

// unique returns a unique part of a name.
func unique() string { return strconv.FormatInt(names.Add(1), 10) }

// namespace creates a namespace in which pods can be created. It is removed with all its pods when the
// test ends.
func namespace(t *testing.T) string {
	t.Helper()
	name := "e2e-" + unique()
	api := node.Client().CoreV1()
	_, err := api.Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.Background()
		if err := api.Namespaces().Delete(ctx, name, metav1.DeleteOptions{}); err != nil {
			t.Errorf("delete of the namespace: %v", err)
		}
		deadline := time.Now().Add(testTimeout)
		for {
			pods, err := api.Pods(name).List(ctx, metav1.ListOptions{})
			if err == nil && len(pods.Items) == 0 {
				return
			}
			if time.Now().After(deadline) {
				t.Errorf("pods of %s are still there after %s: %v", name, testTimeout, err)
				return
			}
			time.Sleep(200 * time.Millisecond)
		}
	})
	// Until a controller has made it, the API server refuses the pods of the namespace, after a second or two.
	watched(t, "the namespace has its service account", func() bool {
		_, err := api.ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err == nil
	})
	return name
}

// A shape changes the pod of a workload.
type shape func(*corev1.PodSpec)

// herdPod is a pod that burns CPU-seconds before it answers HTTP, with a readiness probe every
// second.
func herdPod(cpuSeconds float64, shapes ...shape) corev1.PodSpec {
	grace := int64(1)
	off := false
	spec := corev1.PodSpec{
		TerminationGracePeriodSeconds: &grace,
		AutomountServiceAccountToken:  &off,
		EnableServiceLinks:            &off,
		Containers: []corev1.Container{{
			Name: "app", Image: lab.HerdImage, ImagePullPolicy: corev1.PullNever,
			Args:           []string{"--cpu-seconds", fmt.Sprint(cpuSeconds)},
			ReadinessProbe: probe(corev1.Probe{PeriodSeconds: 1, FailureThreshold: 1}),
		}},
	}
	for _, s := range shapes {
		s(&spec)
	}
	return spec
}

// probe completes a probe of the herd's HTTP port.
func probe(p corev1.Probe) *corev1.Probe {
	p.ProbeHandler = corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}}
	return &p
}

// waiting makes the pod wait, without CPU, before it burns.
func waiting(d time.Duration) shape {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].Args = append(spec.Containers[0].Args, "--wait", d.String())
	}
}

// killedAfter adds a liveness probe that kills a pod which is not up after a time, or up to 3 s earlier.
func killedAfter(d time.Duration) shape {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].LivenessProbe = probe(corev1.Probe{
			InitialDelaySeconds: int32(d.Seconds()) - 9, PeriodSeconds: 3, FailureThreshold: 3,
		})
	}
}

// withLiveness adds the liveness probe that kills a pod which is not up after about 19 seconds.
func withLiveness(spec *corev1.PodSpec) { killedAfter(19 * time.Second)(spec) }

// withStartup adds a startup probe with a period of one second.
func withStartup(spec *corev1.PodSpec) {
	spec.Containers[0].StartupProbe = probe(corev1.Probe{PeriodSeconds: 1, FailureThreshold: 120})
}

// withoutProbes removes all probes.
func withoutProbes(spec *corev1.PodSpec) {
	c := &spec.Containers[0]
	c.ReadinessProbe, c.LivenessProbe, c.StartupProbe = nil, nil, nil
}

// sleeping makes the pod idle for a while before it is ready.
func sleeping(d string) shape {
	return func(spec *corev1.PodSpec) {
		spec.Containers[0].Args = append(spec.Containers[0].Args, "--sleep", d)
	}
}

// A latch keeps pods from getting ready until it is released. So it does not matter how long a
// scenario takes until the pods may get ready.
type latch struct{ dir string }

// latchPath is the folder of a latch inside the containers, and latchFile is the file in it once
// the latch is released.
const (
	latchPath = "/latch"
	latchFile = "released"
)

func newLatch(t *testing.T) latch {
	t.Helper()
	dir, err := os.MkdirTemp(node.Dir, "latch")
	require.NoError(t, err)
	return latch{dir}
}

// holds makes the pod wait, without CPU, for the release before it is ready.
func (l latch) holds(spec *corev1.PodSpec) { l.hold(spec, &spec.Containers[0]) }

// holdsInit gives the pod an init container that waits, without CPU, for the release.
func (l latch) holdsInit(spec *corev1.PodSpec) {
	spec.InitContainers = append(spec.InitContainers, corev1.Container{
		Name: "init", Image: lab.HerdImage, ImagePullPolicy: corev1.PullNever, Args: []string{"--done", "--cpu-seconds", "0"},
	})
	l.hold(spec, &spec.InitContainers[len(spec.InitContainers)-1])
}

func (l latch) hold(spec *corev1.PodSpec, c *corev1.Container) {
	spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "latch", VolumeSource: corev1.VolumeSource{
		HostPath: &corev1.HostPathVolumeSource{Path: l.dir},
	}})
	c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "latch", MountPath: latchPath, ReadOnly: true})
	c.Args = append(c.Args, "--until", path.Join(latchPath, latchFile))
}

// release lets the pods get ready.
func (l latch) release(t *testing.T) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(l.dir, latchFile), nil, 0o600))
}

// runOnce makes the pod end when it would be ready, and never restarts it.
func runOnce(spec *corev1.PodSpec) {
	withoutProbes(spec)
	spec.RestartPolicy = corev1.RestartPolicyNever
	spec.Containers[0].Args = append(spec.Containers[0].Args, "--done")
}

// deploy creates a Deployment.
func deploy(t *testing.T, namespace, name string, replicas int32, spec corev1.PodSpec) {
	t.Helper()
	deployAnnotated(t, namespace, name, replicas, spec, nil)
}

// deployAnnotated creates a Deployment whose pods have annotations.
func deployAnnotated(t *testing.T, namespace, name string, replicas int32, spec corev1.PodSpec, annotations map[string]string) {
	t.Helper()
	labels := map[string]string{"app": name}
	_, err := node.Client().AppsV1().Deployments(namespace).Create(t.Context(), &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas,
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Annotations: annotations}, Spec: spec},
		},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// createPod creates a bare pod.
func createPod(t *testing.T, namespace, name string, spec corev1.PodSpec) {
	t.Helper()
	_, err := node.Client().CoreV1().Pods(namespace).Create(t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec,
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// createJob creates a Job without retries.
func createJob(t *testing.T, namespace, name string, spec corev1.PodSpec) {
	t.Helper()
	none := int32(0)
	_, err := node.Client().BatchV1().Jobs(namespace).Create(t.Context(), &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       batchv1.JobSpec{BackoffLimit: &none, Template: corev1.PodTemplateSpec{Spec: spec}},
	}, metav1.CreateOptions{})
	require.NoError(t, err)
}

// pods lists the pods of a namespace.
func pods(t *testing.T, namespace string) []corev1.Pod {
	t.Helper()
	list, err := node.Client().CoreV1().Pods(namespace).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	return list.Items
}

// condition reports whether a pod's condition is true.
func condition(pod corev1.Pod, kind corev1.PodConditionType) bool {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// restarts returns the sum of the pod's restart counts.
func restarts(pod corev1.Pod) (n int32) {
	for _, c := range pod.Status.ContainerStatuses {
		n += c.RestartCount
	}
	return n
}

// allReady reports whether exactly n pods exist in the namespace, and all are ready.
func allReady(t *testing.T, namespace string, n int) bool {
	t.Helper()
	all := pods(t, namespace)
	ready := 0
	for _, p := range all {
		if condition(p, corev1.PodReady) {
			ready++
		}
	}
	return ready == n && len(all) == n
}
