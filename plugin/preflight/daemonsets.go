package preflight

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// mostDaemonSets is how many DaemonSets a finding names.
const mostDaemonSets = 8

// daemonSetsFinding names the DaemonSets of the node whose pods the config does not exempt. It returns nothing if there
// is none, or if that is not known.
func daemonSetsFinding(ctx context.Context, client dynamic.Interface, node string, config *v1alpha1.PacemakerConfig) []Finding {
	pods, err := client.Resource(schema.GroupVersionResource{Version: "v1", Resource: "pods"}).
		List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + node, ResourceVersion: "0"})
	if err != nil || config == nil {
		return nil // it is one of the missing rights, or no pod of the node waits
	}
	exempt, names := config.Spec.Exemptions, []string{}
	for i := range pods.Items {
		p := &pods.Items[i]
		owner := metav1.GetControllerOf(p)
		if owner != nil && owner.Kind == "DaemonSet" && !exempt.ExemptsNamespace(p.GetNamespace()) && !exempt.DaemonSets.Has(p.GetNamespace()) {
			names = append(names, p.GetNamespace()+"/"+owner.Name)
		}
	}
	slices.Sort(names)
	names = slices.Compact(names)
	if len(names) == 0 {
		return nil
	}
	text := strings.Join(names[:min(len(names), mostDaemonSets)], ", ")
	if more := len(names) - mostDaemonSets; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return []Finding{ok("daemonsets", "the config does not exempt the pods of these DaemonSets: "+text+"; exempt those that other pods need, by exemptions.daemonSets.namespaces")}
}
