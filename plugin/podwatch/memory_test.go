package podwatch

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
)

// realistic returns a pod like one of a Deployment with a service mesh: about 15 KiB of JSON, two thirds of it
// environment, annotations and managed fields.
func realistic(i int) *corev1.Pod {
	yes, policy := true, corev1.ContainerRestartPolicyAlways
	p := webPod(named(fmt.Sprintf("web-6d5f9c7b8d-%05d", i)), uid("", types.UID(fmt.Sprintf("8a9c6a0e-55f1-4f0e-9c39-%012d", i))))
	p.Labels = map[string]string{"app.kubernetes.io/name": "web", "pod-template-hash": "6d5f9c7b8d", "team": "payments"}
	p.Annotations = map[string]string{"mesh.example.com/status": strings.Repeat(`{"injected":true},`, 120)}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-6d5f9c7b8d", Controller: &yes}}
	fields := `{"f:metadata":{` + strings.Repeat(`"f:labels":{"f:app":{}},`, 120) + `"f:name":{}}}`
	p.ManagedFields = []metav1.ManagedFieldsEntry{
		{Manager: "kube-controller-manager", Operation: "Update", FieldsV1: metav1.NewFieldsV1(fields)},
		{Manager: "kubelet", Operation: "Update", Subresource: "status", FieldsV1: metav1.NewFieldsV1(fields)},
	}
	app := container("app")
	for n := range 50 {
		app.Env = append(app.Env, corev1.EnvVar{Name: fmt.Sprintf("SERVICE_ENDPOINT_%02d", n), Value: strings.Repeat("v", 60)})
	}
	app.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}
	app.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1}
	proxy := container("proxy")
	proxy.RestartPolicy = &policy
	p.Spec.InitContainers = []corev1.Container{container("setup"), proxy}
	p.Spec.Containers = []corev1.Container{app}
	for n := range 8 {
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprintf("volume-%d", n)})
	}
	p.Status.Phase = corev1.PodRunning
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.ContainersReady, Status: corev1.ConditionTrue}}
	p.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("setup", 0), running("proxy", 0)}
	p.Status.ContainerStatuses = []corev1.ContainerStatus{running("app", 0)}
	for _, statuses := range [][]corev1.ContainerStatus{p.Status.InitContainerStatuses, p.Status.ContainerStatuses} {
		for n := range statuses {
			statuses[n].ContainerID = "containerd://" + strings.Repeat("0123456789abcdef", 4)
		}
	}
	return p
}

// The informer keeps no API object, from a list or from a watch.
func TestKeepsNoAPIObject(t *testing.T) {
	t.Parallel()
	kept := New(Options{Client: kubetest.Of(fake.NewClientset())}).keep(realistic(0))
	require.Equal(t, metav1.ObjectMeta{
		Namespace: "ns", Name: kept.Name, UID: kept.UID, ResourceVersion: kept.ResourceVersion,
	}, kept.ObjectMeta)
	text := fmt.Sprintf("%+v", kept.pod)
	require.Less(t, len(text), 1100, text)
}

// However large a tenant makes a pod, what is kept of it is bounded. It then has no containers and no facts. Whether it is
// being stopped, and whether it has ended, is known all the same.
func TestWhatIsKeptOfAPodIsBounded(t *testing.T) {
	t.Parallel()
	const most = 2 * mostKept // as JSON
	long := strings.Repeat("v", 256<<10)
	now := metav1.Now()
	for name, c := range map[string]struct {
		large func(p *corev1.Pod, n int)
		whole bool // its containers are known
	}{
		"containers": {large: func(p *corev1.Pod, n int) {
			p.Spec.Containers = append(p.Spec.Containers, container(fmt.Sprintf("c%d", n)))
			p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, running(fmt.Sprintf("c%d", n), 0))
		}},
		"ephemeral containers": {large: func(p *corev1.Pod, n int) {
			p.Spec.EphemeralContainers = append(p.Spec.EphemeralContainers, corev1.EphemeralContainer{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: fmt.Sprint(n)}})
		}},
		"labels":      {large: func(p *corev1.Pod, n int) { p.Labels[fmt.Sprint(n)] = "v" }},
		"annotations": {large: func(p *corev1.Pod, n int) { p.Annotations[fmt.Sprint(n)] = "v" }, whole: true},
		"a uid":       {large: func(p *corev1.Pod, _ int) { p.Annotations[corev1.MirrorPodAnnotationKey] = long }, whole: true},
		"an owner":    {large: func(p *corev1.Pod, _ int) { p.OwnerReferences[0].Kind = long }, whole: true},
		"requests": {large: func(p *corev1.Pod, n int) {
			p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("example.com/%d", n))] = resource.MustParse("1")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := New(Options{Client: kubetest.Of(fake.NewClientset())})
			var needs startpolicy.Needs
			w.ExtractFacts(func(p *corev1.Pod) startpolicy.Facts {
				f := startpolicy.FactsOf(p, needs)
				f.Labels = p.Labels
				return f
			}, 0)
			p := realistic(0)
			p.DeletionTimestamp = &now
			for n := range 20000 {
				c.large(p, n)
			}
			pod := w.keep(p).pod
			text, err := json.Marshal(pod)
			require.NoError(t, err)
			require.Less(t, len(text), most)
			require.Equal(t, c.whole, len(pod.Containers) > 0)
			require.Equal(t, c.whole, pod.Facts != nil)
			require.Equal(t, string(p.UID), pod.UID)
			require.True(t, pod.Deleting && pod.StopsBy.Equal(now.Time) && pod.Phase == corev1.PodRunning, "%+v", pod)
		})
	}
}
