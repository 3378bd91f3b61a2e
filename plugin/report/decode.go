package report

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// statusOf reads the status of an object; the zero value where it has none, or one
// of another form: it is about to be written anew.
func statusOf[T any](u *unstructured.Unstructured) (status T) {
	object, _, err := unstructured.NestedMap(u.Object, "status")
	if err != nil || runtime.DefaultUnstructuredConverter.FromUnstructured(object, &status) != nil {
		var none T
		return none
	}
	return status
}

// trim keeps of a PacemakerNode its name, version and what is summed up.
func trim(object runtime.Object) *v1alpha1.PacemakerNode {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		n, _ := object.(*v1alpha1.PacemakerNode) // it was trimmed already
		return n
	}
	n := &v1alpha1.PacemakerNode{
		ObjectMeta: metav1.ObjectMeta{Name: u.GetName(), UID: u.GetUID(), ResourceVersion: u.GetResourceVersion()},
		Status:     statusOf[v1alpha1.PacemakerNodeStatus](u),
	}
	n.Status.Message, n.Status.Version, n.Status.Signal = "", "", ""
	return n
}
