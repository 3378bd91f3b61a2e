package podwatch

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
)

// realistic returns a pod like one of a Deployment with a service mesh: about 15 KiB of JSON, two thirds of it
// environment, annotations and managed fields.
func realistic() *corev1.Pod {
	return webPod(func(p *corev1.Pod) {
		ownedBy("ReplicaSet", "web-6d5f9c7b8d", map[string]string{"app.kubernetes.io/name": "web", "pod-template-hash": "6d5f9c7b8d", "team": "payments"})(p)
		p.Annotations = map[string]string{"mesh.example.com/status": strings.Repeat(`{"injected":true},`, 120)}
		managed := metav1.ManagedFieldsEntry{Manager: "kubelet", FieldsV1: metav1.NewFieldsV1(strings.Repeat(`"f:labels":{"f:app":{}},`, 120))}
		p.ManagedFields = []metav1.ManagedFieldsEntry{managed, managed}
		app := container("app")
		app.Env = slices.Repeat([]corev1.EnvVar{{Name: "SERVICE_ENDPOINT", Value: strings.Repeat("v", 60)}}, 50)
		app.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("500m"), "memory": resource.MustParse("1Gi")}
		p.Spec.InitContainers = []corev1.Container{container("setup"), with(container("proxy"), corev1.ContainerRestartPolicyAlways)}
		p.Spec.Containers, p.Status.Phase = []corev1.Container{app}, corev1.PodRunning
		p.Status.InitContainerStatuses = []corev1.ContainerStatus{ended("setup", 0), running("proxy", 0)}
		p.Status.ContainerStatuses = []corev1.ContainerStatus{running("app", 0)}
	})
}

// The informer keeps no API object, from a list or from a watch.
func TestKeepsNoAPIObject(t *testing.T) {
	t.Parallel()
	kept := New(Options{Client: kubetest.Of(fake.NewClientset())}).keep(realistic())
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
			p := realistic()
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
