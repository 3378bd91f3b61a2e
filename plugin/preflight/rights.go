package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin"
)

// right is a permission that a daemon uses, for all namespaces and objects or for those that are named.
type right struct {
	group, resource, verbs string
	namespace, name        string // empty for all
	level                  Level  // of the finding if it is missing
	without                string // what does not work then
}

// rightsOf returns the permissions that a daemon with these options uses while these policies are in force.
func rightsOf(o plugin.Options, policies []*v1alpha1.StartPolicy) []right {
	const unseen, unsummed = "kubectl get pacemakernodes does not show this node", "the status of PacemakerConfigs and StartPolicies may be out of date"
	const own, leases = "pod-pacemaker.io", "coordination.k8s.io"
	all := []right{
		{group: "", resource: "pods", verbs: "list watch", level: Fault, without: "the daemon does not know the probes, owner and priority of pods"},
		{group: "", resource: "nodes", verbs: "get list watch", level: Fault, without: "no PacemakerConfig can be selected by the node's labels"},
		{group: own, resource: "pacemakerconfigs", verbs: "get list watch", level: Fault, without: "only a PacemakerConfig from a file applies"},
		{group: own, resource: "startpolicies", verbs: "get list watch", level: Fault, without: "StartPolicies hold no pod"},
		{group: "", resource: "events", verbs: "create patch", level: Warning, without: "no event reports what a pod waits for"},
		{group: own, resource: "pacemakernodes", verbs: "create", level: Warning, without: unseen},
		{group: own, resource: "pacemakernodes/status", verbs: "patch", level: Warning, without: unseen},
		{group: own, resource: "pacemakernodes", verbs: "list", level: Warning, without: unsummed},
		{group: own, resource: "pacemakerconfigs/status", verbs: "patch", level: Warning, without: unsummed},
		{group: own, resource: "startpolicies/status", verbs: "patch", level: Warning, without: unsummed},
		{group: leases, resource: "leases", verbs: "create", namespace: o.Namespace, level: Warning, without: unsummed},
		{group: leases, resource: "leases", verbs: "get update", namespace: o.Namespace, name: o.SummaryLease(), level: Warning, without: unsummed},
	}
	if namespace, name, set := strings.Cut(o.DaemonSet, "/"); set {
		all = append(all, right{group: "apps", resource: "daemonsets", verbs: "get", namespace: namespace, name: name, level: Warning, without: "the daemon's files stay on the host after an uninstallation"})
	}
	if o.StartupTaint != "" {
		all = append(all, right{group: "", resource: "nodes", verbs: "patch", level: Fault, without: "the startup taint stays on the node"})
	}
	if slices.ContainsFunc(policies, func(p *v1alpha1.StartPolicy) bool { return startpolicy.Compile(p).NeedsNamespaces }) {
		all = append(all, right{group: "", resource: "namespaces", verbs: "list watch", level: Fault, without: "StartPolicies that select namespaces by their labels hold no pod"})
	}
	if slices.ContainsFunc(policies, func(p *v1alpha1.StartPolicy) bool { return p.Spec.GetScope() == v1alpha1.ScopeCluster }) {
		all = append(all, right{group: leases, resource: "leases", verbs: "list create update delete", namespace: o.Namespace, level: Fault, without: "StartPolicies with the scope Cluster hold no pod"})
	}
	return all
}

// askRights returns a finding for each right that is missing in part, or one if none is.
func askRights(ctx context.Context, client dynamic.Interface, o plugin.Options, policies []*v1alpha1.StartPolicy) (denied []Finding) {
	for _, right := range rightsOf(o, policies) {
		resource, sub, _ := strings.Cut(right.resource, "/")
		var missing []string
		for verb := range strings.FieldsSeq(right.verbs) {
			review, err := kube.Review(ctx, client, "authorization.k8s.io", "SelfSubjectAccessReview", map[string]any{
				"resourceAttributes": map[string]any{
					"group": right.group, "resource": resource, "subresource": sub, "verb": verb, "namespace": right.namespace, "name": right.name,
				},
			})
			if err != nil {
				return append(denied, warning("rights", "the API server does not report them: "+err.Error(), "compare them with deploy/base/rbac.yaml"))
			}
			if review["allowed"] != true {
				missing = append(missing, verb)
			}
		}
		if len(missing) > 0 {
			denied = append(denied, Finding{
				"rights", right.level, fmt.Sprintf("not allowed to %s %s: %s", strings.Join(missing, ", "), right.resource, right.without),
				"give the daemon's user the role in deploy/base/rbac.yaml, or that of the chart's value for this part",
			})
		}
	}
	if len(denied) == 0 {
		return []Finding{ok("rights", "all that a daemon with these flags needs")}
	}
	return denied
}
