package plugin

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

func TestExemption(t *testing.T) {
	t.Parallel()
	skip := v1alpha1.Exemptions{AllowSkipAnnotation: true}
	for _, c := range []struct {
		name   string
		exempt v1alpha1.Exemptions
		record record
		pod    podwatch.Pod
		known  bool
		want   string
	}{
		{name: "nothing is known"},
		{name: "an ordinary pod", known: true, pod: podwatch.Pod{OwnerKind: "ReplicaSet"}},
		{name: "kube-system by default", record: record{namespace: "kube-system"}, want: "Namespace"},
		{name: "no namespace at all", exempt: v1alpha1.Exemptions{Namespaces: []string{}}, record: record{namespace: "kube-system"}},
		{name: "static, by the runtime", record: record{static: true}, want: "Static"},
		{name: "from the API", record: record{fromAPI: true}},
		{name: "static, by its mirror pod", known: true, pod: podwatch.Pod{Static: true}, want: "Static"},
		{name: "DaemonSet, by its label", record: record{template: true}, want: "DaemonSet"},
		{name: "the label of a pod that is none", record: record{template: true}, known: true},
		{name: "DaemonSet", known: true, pod: podwatch.Pod{OwnerKind: "DaemonSet"}, want: "DaemonSet"},
		{name: "critical for the node", known: true, pod: podwatch.Pod{PriorityClassName: "system-node-critical"}, want: "Critical"},
		{name: "critical for the cluster", known: true, pod: podwatch.Pod{PriorityClassName: "system-cluster-critical"}, want: "Critical"},
		{name: "annotation that is not allowed", known: true, pod: podwatch.Pod{SkipAnnotation: true}},
		{name: "annotation that is allowed", exempt: skip, known: true, pod: podwatch.Pod{SkipAnnotation: true}, want: "Annotation"},
	} {
		assert.Equal(t, c.want, exemption(c.exempt, &c.record, c.pod, c.known), c.name)
	}
}
