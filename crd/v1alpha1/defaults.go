package v1alpha1

import (
	"path"
	"slices"
	"time"
)

// The values that hold where a field is absent. The custom resource definition
// has the same defaults.
const (
	DefaultStartTimeout = 5 * time.Minute
	DefaultMaxWait      = 10 * time.Minute
	DefaultSettleTime   = 5 * time.Second
	DefaultBurst        = 1
	DefaultAdaptiveMin  = 1
	// DefaultNoProgressAfter is when a slot is lent because no start gets on.
	DefaultNoProgressAfter = 10 * time.Second
	// DefaultPressureWindow is the time over which pressure is measured.
	DefaultPressureWindow = 2 * time.Second
	// DefaultMinUtilization is the CPU use, in percent, above which CPU pressure
	// counts.
	DefaultMinUtilization = 70
	// DefaultExemptNamespace is the one namespace that is exempt.
	DefaultExemptNamespace = "kube-system"
)

// GetStartTimeout is how long a start may hold its slot.
func (s PacemakerConfigSpec) GetStartTimeout() time.Duration {
	return s.StartTimeout.Or(DefaultStartTimeout)
}

// GetMaxWait is how long a pod may wait before it starts over the limit.
func (s PacemakerConfigSpec) GetMaxWait() time.Duration {
	return s.MaxWait.Or(DefaultMaxWait)
}

// GetSettleTime is how long a pod without probes keeps its slot after all its
// containers run; it can be 0.
func (s PacemakerConfigSpec) GetSettleTime() time.Duration {
	return s.SettleTime.Or(DefaultSettleTime)
}

// GetMode is what is done with a start that a limit holds.
func (s PacemakerConfigSpec) GetMode() Mode {
	if s.Mode == "" {
		return ModeEnforce
	}
	return s.Mode
}

// GetFairness is which pods share their turns.
func (s PacemakerConfigSpec) GetFairness() Fairness {
	if s.Fairness == "" {
		return FairnessNamespace
	}
	return s.Fairness
}

// PacesRestarts reports whether a lone container that exited waits for its start
// again.
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

// DefaultSystemNamespaces returns the namespaces in which pods of DaemonSets and critical
// pods never wait: those of the cluster's own parts, by the names that are usual for
// them, and the project's.
func DefaultSystemNamespaces() []string { return []string{"kube-*", "*-system", "pod-pacemaker"} }

// Has reports whether these are pods of a namespace in which they never wait.
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
