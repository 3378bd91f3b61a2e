package v1alpha1

import (
	"cmp"
	"path"
	"slices"
	"time"
)

// The defaults of fields that are absent. The custom resource definitions have the same.
const (
	DefaultStartTimeout = 5 * time.Minute
	DefaultMaxWait      = 4 * time.Minute
	DefaultSettleTime   = 5 * time.Second
	DefaultBurst        = 1
	DefaultAdaptiveMin  = 1
	// DefaultNoProgressAfter is how long all starts may make no progress before one more pod starts.
	DefaultNoProgressAfter = 10 * time.Second
	// DefaultPressureWindow is the time over which pressure is measured.
	DefaultPressureWindow = 2 * time.Second
	// DefaultMinUtilization is the CPU use, in percent, above which CPU pressure counts.
	DefaultMinUtilization = 70
	// DefaultExemptNamespace is the only namespace whose pods are all exempt.
	DefaultExemptNamespace = "kube-system"
)

// GetStartTimeout returns how long a start may hold its slot.
func (s PacemakerConfigSpec) GetStartTimeout() time.Duration {
	return s.StartTimeout.Or(DefaultStartTimeout)
}

// GetMaxWait returns how long a pod may wait before it may start over the limit.
func (s PacemakerConfigSpec) GetMaxWait() time.Duration {
	return s.MaxWait.Or(DefaultMaxWait)
}

// GetSettleTime returns how long a pod without probes keeps its slot after all its containers are
// running. It can be 0.
func (s PacemakerConfigSpec) GetSettleTime() time.Duration {
	return s.SettleTime.Or(DefaultSettleTime)
}

// GetMode returns what happens to a start that a limit holds.
func (s PacemakerConfigSpec) GetMode() Mode {
	return cmp.Or(s.Mode, ModeEnforce)
}

// GetFairness returns how pods of the same priority take turns.
func (s PacemakerConfigSpec) GetFairness() Fairness {
	return cmp.Or(s.Fairness, FairnessNamespace)
}

// PacesRestarts reports whether a container that exited waits before it starts again.
func (s PacemakerConfigSpec) PacesRestarts() bool {
	return s.Restarts.Pace == nil || *s.Restarts.Pace
}

// ExemptsNamespace reports whether the pods of a namespace never wait.
func (e Exemptions) ExemptsNamespace(namespace string) bool {
	if e.Namespaces == nil {
		return namespace == DefaultExemptNamespace
	}
	return slices.Contains(e.Namespaces, namespace)
}

// DefaultSystemNamespaces returns patterns of the namespaces in which pods of DaemonSets and
// critical pods never wait: the usual names for the parts of a cluster, and this project's name.
func DefaultSystemNamespaces() []string { return []string{"kube-*", "*-system", "pod-pacemaker"} }

// Has reports whether the pods never wait in a namespace.
func (e ExemptIn) Has(namespace string) bool {
	among := e.Namespaces
	if among == nil {
		among = DefaultSystemNamespaces()
	}
	return slices.ContainsFunc(among, func(pattern string) bool {
		matches, err := path.Match(pattern, namespace)
		return err == nil && matches
	})
}
