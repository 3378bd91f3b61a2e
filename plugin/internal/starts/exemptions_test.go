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
	daemonSet, critical := podwatch.Pod{UID: "u", DaemonSet: true}, podwatch.Pod{UID: "u", PriorityClassName: "system-node-critical"}
	for _, c := range []struct {
		name   string
		exempt v1alpha1.Exemptions
		p      Identity
		pod    podwatch.Pod
		want   bool
	}{
		{name: "nothing is known"},
		{name: "an ordinary pod", pod: podwatch.Pod{UID: "u"}},
		{name: "kube-system by default", p: Identity{Namespace: "kube-system"}, want: true},
		{name: "empty list of namespaces", exempt: v1alpha1.Exemptions{Namespaces: []string{}}, p: Identity{Namespace: "kube-system"}},
		{name: "static, by the runtime", p: Identity{Static: true}, want: true},
		{name: "static, by its mirror pod", pod: podwatch.Pod{UID: "u", Static: true}, want: true},
		{name: "DaemonSet, by its label", p: Identity{Namespace: "calico-system", Template: true}, want: true},
		{name: "the label, set by a tenant", p: Identity{Namespace: "shop", Template: true}},
		{name: "the label, but no DaemonSet", p: Identity{Namespace: "calico-system", Template: true}, pod: podwatch.Pod{UID: "u"}},
		{name: "DaemonSet", p: system, pod: daemonSet, want: true},
		{name: "DaemonSet of the project", p: Identity{Namespace: "pod-pacemaker"}, pod: daemonSet, want: true},
		{name: "a tenant's DaemonSet", p: tenant, pod: daemonSet},
		{name: "DaemonSets nowhere", p: system, exempt: v1alpha1.Exemptions{DaemonSets: v1alpha1.ExemptIn{Namespaces: []string{}}}, pod: daemonSet},
		{name: "DaemonSets everywhere", p: tenant, exempt: v1alpha1.Exemptions{DaemonSets: in("*")}, pod: daemonSet, want: true},
		{name: "critical for the node", p: system, pod: critical, want: true},
		{name: "critical for the cluster", p: system, pod: podwatch.Pod{UID: "u", PriorityClassName: "system-cluster-critical"}, want: true},
		{name: "critical, by a tenant", p: tenant, pod: critical},
		{name: "critical in a namespace that the administrator names", p: tenant, exempt: v1alpha1.Exemptions{CriticalPods: in("sh*")}, pod: critical, want: true},
		{name: "critical, only the list of DaemonSets names it", p: tenant, exempt: v1alpha1.Exemptions{DaemonSets: in("*")}, pod: critical},
		{name: "annotation that is not allowed", pod: podwatch.Pod{UID: "u", SkipAnnotation: true}},
		{name: "annotation that is allowed", exempt: skip, pod: podwatch.Pod{UID: "u", SkipAnnotation: true}, want: true},
	} {
		assert.Equal(t, c.want, isExempt(c.exempt, c.p, c.pod), c.name)
	}
}
