package starts

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

func TestWhichPodsAreExempt(t *testing.T) {
	t.Parallel()
	skip := v1alpha1.Exemptions{AllowSkipAnnotation: true}
	system, tenant := Identity{Namespace: "calico-system"}, Identity{Namespace: "shop"}
	in := func(namespaces ...string) v1alpha1.ExemptIn { return v1alpha1.ExemptIn{Namespaces: namespaces} }
	daemonSet, critical := podwatch.Pod{DaemonSet: true}, podwatch.Pod{PriorityClassName: "system-node-critical"}
	for _, c := range []struct {
		name   string
		exempt v1alpha1.Exemptions
		p      Identity
		pod    podwatch.Pod
		known  bool
		want   bool
	}{
		{name: "nothing is known"},
		{name: "an ordinary pod", known: true, pod: podwatch.Pod{}},
		{name: "kube-system by default", p: Identity{Namespace: "kube-system"}, want: true},
		{name: "empty list of namespaces", exempt: v1alpha1.Exemptions{Namespaces: []string{}}, p: Identity{Namespace: "kube-system"}},
		{name: "static, by the runtime", p: Identity{Static: true}, want: true},
		{name: "static, by its mirror pod", known: true, pod: podwatch.Pod{Static: true}, want: true},
		{name: "DaemonSet, by its label", p: Identity{Namespace: "calico-system", Template: true}, want: true},
		{name: "the label, set by a tenant", p: Identity{Namespace: "shop", Template: true}},
		{name: "the label, but no DaemonSet", p: Identity{Namespace: "calico-system", Template: true}, known: true},
		{name: "DaemonSet", p: system, known: true, pod: daemonSet, want: true},
		{name: "DaemonSet of the project", p: Identity{Namespace: "pod-pacemaker"}, known: true, pod: daemonSet, want: true},
		{name: "a tenant's DaemonSet", p: tenant, known: true, pod: daemonSet},
		{name: "DaemonSets nowhere", p: system, exempt: v1alpha1.Exemptions{DaemonSets: v1alpha1.ExemptIn{Namespaces: []string{}}}, known: true, pod: daemonSet},
		{name: "DaemonSets everywhere", p: tenant, exempt: v1alpha1.Exemptions{DaemonSets: in("*")}, known: true, pod: daemonSet, want: true},
		{name: "critical for the node", p: system, known: true, pod: critical, want: true},
		{name: "critical for the cluster", p: system, known: true, pod: podwatch.Pod{PriorityClassName: "system-cluster-critical"}, want: true},
		{name: "critical, by a tenant", p: tenant, known: true, pod: critical},
		{name: "critical in a namespace that the administrator names", p: tenant, exempt: v1alpha1.Exemptions{CriticalPods: in("sh*")}, known: true, pod: critical, want: true},
		{name: "critical, only the list of DaemonSets names it", p: tenant, exempt: v1alpha1.Exemptions{DaemonSets: in("*")}, known: true, pod: critical},
		{name: "annotation that is not allowed", known: true, pod: podwatch.Pod{SkipAnnotation: true}},
		{name: "annotation that is allowed", exempt: skip, known: true, pod: podwatch.Pod{SkipAnnotation: true}, want: true},
	} {
		assert.Equal(t, c.want, isExempt(c.exempt, c.p, c.pod, c.known), c.name)
	}
}
