package crd

import (
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// maxStartAfter is how many entries startAfter may have.
const maxStartAfter = 16

func validateStartAfter(c checker, all []v1alpha1.StartAfter) {
	if !c.atMost(maxStartAfter, len(all)) {
		return
	}
	for i, a := range all {
		c := c.index(i)
		selects := a.PodSelector != nil
		if (a.DaemonSet != "") == selects || (a.Namespace != "") != selects {
			c.add(field.Required(c.path, "must have either daemonSet, or namespace and podSelector"))
		}
		if a.DaemonSet != "" {
			c.at("daemonSet").daemonSet(a.DaemonSet)
		}
		if a.Namespace != "" {
			c.at("namespace").invalid(a.Namespace, "must be the name of a namespace: ", validation.IsDNS1123Label(a.Namespace)...)
		}
		validateSelector(c.at("podSelector"), a.PodSelector)
		c.span("timeout", a.Timeout, afterSpan)
	}
}

// daemonSet checks the namespace and the name of a DaemonSet.
func (c checker) daemonSet(text string) {
	namespace, name, _ := strings.Cut(text, "/")
	if len(validation.IsDNS1123Label(namespace)) > 0 || len(validation.IsDNS1123Subdomain(name)) > 0 {
		c.invalid(text, "", `must be the namespace and the name of a DaemonSet, like "kube-system/cilium"`)
	}
}
