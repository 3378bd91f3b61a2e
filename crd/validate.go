package crd

import (
	"maps"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

const (
	maxSelectorLabels = 16
	maxPriority       = 1_000_000
	maxNamespaces     = 64
	maxPattern        = 63
)

// namespacePattern is also in the custom resource definition.
var namespacePattern = regexp.MustCompile(`^([*]|([*]-?)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(-?[*])?)$`)

// Validate returns an error for each field of a config that is wrong, with the path of the field and
// what was expected. The custom resource definition has the same rules.
func Validate(config *v1alpha1.PacemakerConfig) (faults field.ErrorList) {
	spec, c := config.Spec, checker{field.NewPath("spec"), &faults}
	checker{field.NewPath("metadata", "name"), &faults}.name(config.Name)
	oneOf(c, "mode", spec.Mode, v1alpha1.ModeEnforce, v1alpha1.ModeShadow, v1alpha1.ModeDisabled)
	oneOf(c, "fairness", spec.Fairness, v1alpha1.FairnessNamespace, v1alpha1.FairnessNone)
	c.at("instance").instance(spec.Instance)
	c.at("nodeSelector").labels(spec.NodeSelector)
	c.whole("priority", &spec.Priority, -maxPriority, maxPriority)
	c.at("throttleConfig").throttle(spec.ThrottleConfig)
	c.times(spec)
	validateStartAfter(c.at("startAfter"), spec.StartAfter)
	exempt, exemptions := c.at("exemptions"), spec.Exemptions
	exempt.at("namespaces").namespaces(exemptions.Namespaces, checker.namespace)
	exempt.at("daemonSets", "namespaces").namespaces(exemptions.DaemonSets.Namespaces, checker.pattern)
	exempt.at("criticalPods", "namespaces").namespaces(exemptions.CriticalPods.Namespaces, checker.pattern)
	return faults
}

func (c checker) name(name string) {
	if name == "" {
		c.add(field.Required(c.path, "must be the name of this config, like \"default\""))
		return
	}
	c.invalid(name, "", validation.IsDNS1123Subdomain(name)...)
}

func (c checker) instance(instance string) {
	if instance != "" {
		c.invalid(instance, "must be the name of a daemon's instance: ", validation.IsDNS1123Label(instance)...)
	}
}

func (c checker) labels(selector map[string]v1alpha1.LabelValue) {
	if !c.atMost(maxSelectorLabels, len(selector)) {
		return
	}
	for _, key := range sortedKeys(selector) {
		c.invalid(key, "every key must be a label name: ", validation.IsQualifiedName(key)...)
		c.at(key).labelValue(string(selector[key]))
	}
}

func (c checker) labelValue(value string) {
	c.invalid(value, "must be a label value: ", validation.IsValidLabelValue(value)...)
}

func (c checker) times(spec v1alpha1.PacemakerConfigSpec) {
	before := len(*c.faults)
	c.span("startTimeout", spec.StartTimeout, longSpan)
	c.span("maxWait", spec.MaxWait, longSpan)
	c.span("settleTime", spec.SettleTime, settleSpan)
	if len(*c.faults) == before && spec.GetSettleTime() >= spec.GetStartTimeout() {
		c.at("settleTime").invalid(spec.GetSettleTime().String(), "must be shorter than startTimeout, which is ", spec.GetStartTimeout().String())
	}
}

// namespaces checks a list of names or patterns, each with valid, and that none repeats an earlier one.
func (c checker) namespaces(all []string, valid func(checker, string)) {
	if !c.atMost(maxNamespaces, len(all)) {
		return
	}
	for i, one := range all {
		valid(c.index(i), one)
		if slices.Contains(all[:i], one) {
			c.add(field.Duplicate(c.path.Index(i), one))
		}
	}
}

func (c checker) namespace(name string) {
	if strings.Contains(name, "*") {
		c.invalid(name, "", "must be the name of a namespace: wildcards work only in daemonSets and criticalPods")
		return
	}
	c.invalid(name, "must be the name of a namespace: ", validation.IsDNS1123Label(name)...)
}

func (c checker) pattern(pattern string) {
	if len(pattern) > maxPattern || !namespacePattern.MatchString(pattern) {
		c.invalid(pattern, "",
			"must be the name of a namespace, or \"*\", or a name that begins or ends with '*', like \"kube-*\"; at most 63 characters")
	}
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
