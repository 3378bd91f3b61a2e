package v1alpha1

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/util/intstr"
)

// The values that hold where a field is absent. The custom resource definition
// has the same defaults.
const (
	DefaultStartTimeout = 5 * time.Minute
	DefaultMaxWait      = 10 * time.Minute
	DefaultSettleTime   = 5 * time.Second
	DefaultBurst        = 1
	// DefaultExemptNamespace is the one namespace that is exempt.
	DefaultExemptNamespace = "kube-system"
)

// GetStartTimeout is how long a start may hold its slot.
func (s PacemakerConfigSpec) GetStartTimeout() time.Duration {
	return s.StartTimeout.orDefault(DefaultStartTimeout)
}

// GetMaxWait is how long a pod may wait before it starts over the limit.
func (s PacemakerConfigSpec) GetMaxWait() time.Duration {
	return s.MaxWait.orDefault(DefaultMaxWait)
}

// GetSettleTime is how long a pod without probes keeps its slot after all its
// containers run; it can be 0.
func (s PacemakerConfigSpec) GetSettleTime() time.Duration {
	return s.SettleTime.orDefault(DefaultSettleTime)
}

// ConcurrencyLimit is how many pods may be starting at a time on a node with so
// many CPU cores. limited is false where the config sets no such limit; limit is
// at least 1 otherwise.
func (t ThrottleConfig) ConcurrencyLimit(cores int) (limit int, limited bool) {
	switch m := t.MaxConcurrent; {
	case m == nil:
		return 0, false
	case m.Value != nil:
		return max(1, int(*m.Value)), true
	case m.PerCore != nil:
		return perCoreLimit(*m.PerCore, cores)
	default:
		return 0, false
	}
}

func perCoreLimit(perCore intstr.IntOrString, cores int) (limit int, limited bool) {
	milli, err := MilliPerCore(perCore)
	if err != nil {
		return 0, false
	}
	return max(1, int(int64(cores)*milli/1000)), true
}

// StartRate is the token bucket of starts: one token per every, at most burst
// saved up. limited is false where the config sets no such limit; every is above
// 0 and burst at least 1 otherwise.
func (t ThrottleConfig) StartRate() (every time.Duration, burst int, limited bool) {
	if t.RateLimit == nil {
		return 0, 0, false
	}
	every, err := t.RateLimit.FillFactor.Parse()
	if err != nil || every <= 0 {
		return 0, 0, false
	}
	burst = DefaultBurst
	if b := t.RateLimit.Burst; b != nil {
		burst = max(1, int(*b))
	}
	return every, burst, true
}

// ExemptsNamespace tells whether the pods of a namespace never wait.
func (e Exemptions) ExemptsNamespace(namespace string) bool {
	if e.Namespaces == nil {
		return namespace == DefaultExemptNamespace
	}
	return slices.Contains(e.Namespaces, namespace)
}
