package shapes

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Limits are a PacemakerConfig. A zero field is left out.
type Limits struct {
	Mode                              string
	Concurrent                        int
	FillFactor                        time.Duration
	Burst                             int
	StartTimeout, MaxWait, SettleTime time.Duration
	UnfairNone                        bool // fairness: None
	NoLoans                           bool // noProgressAfter: 0s, so no start lends its slot
	AdaptiveMin, AdaptiveMax          int  // of adaptive; AdaptiveMin 0: it is not used, AdaptiveMax 0: it has none
	Signal                            throttle.Signal
	Most, Increment                   float64 // of the signal; Most 0: no limit on a signal
}

// The defaults of a PacemakerConfig.
const (
	defaultStartTimeout = 5 * time.Minute
	defaultMaxWait      = 4 * time.Minute
	defaultSettleTime   = 5 * time.Second
)

// EffectiveStartTimeout returns the startTimeout in force: the default if it is left out.
func (l Limits) EffectiveStartTimeout() time.Duration {
	return cmp.Or(l.StartTimeout, defaultStartTimeout)
}

// EffectiveMaxWait returns the maxWait in force: the default if it is left out.
func (l Limits) EffectiveMaxWait() time.Duration { return cmp.Or(l.MaxWait, defaultMaxWait) }

// EffectiveSettleTime returns the settleTime in force: the default if it is left out.
func (l Limits) EffectiveSettleTime() time.Duration { return cmp.Or(l.SettleTime, defaultSettleTime) }

// Enforced reports whether pods wait.
func (l Limits) Enforced() bool { return l.Mode == "" || l.Mode == "Enforce" }

// AtMost returns how many starts there may be at a time.
func (l Limits) AtMost() int {
	if l.AdaptiveMax > 0 {
		return min(l.Concurrent, l.AdaptiveMax)
	}
	return l.Concurrent
}

// AtLeast returns how many starts the daemon must allow if nothing but their number holds pods.
func (l Limits) AtLeast() int {
	if l.AdaptiveMin > 0 {
		return min(l.Concurrent, l.AdaptiveMin)
	}
	return l.Concurrent
}

// Spec returns the spec of a PacemakerConfig.
func (l Limits) Spec() map[string]any {
	config := map[string]any{"maxConcurrent": map[string]any{"value": int64(l.Concurrent)}}
	if l.FillFactor > 0 {
		config["rateLimit"] = map[string]any{"fillFactor": inWholeUnits(l.FillFactor), "burst": int64(max(l.Burst, 1))}
	}
	if l.AdaptiveMin > 0 {
		adaptive := map[string]any{"min": int64(l.AdaptiveMin)}
		if l.AdaptiveMax > 0 {
			adaptive["max"] = int64(l.AdaptiveMax)
		}
		config["adaptive"] = adaptive
	}
	if l.NoLoans {
		config["noProgressAfter"] = "0s"
	}
	if l.Most > 0 {
		l.limitSignal(config)
	}
	spec := map[string]any{"throttleConfig": config}
	for name, d := range map[string]time.Duration{"startTimeout": l.StartTimeout, "maxWait": l.MaxWait, "settleTime": l.SettleTime} {
		if d > 0 {
			spec[name] = inWholeUnits(d)
		}
	}
	if l.Mode != "" {
		spec["mode"] = l.Mode
	}
	if l.UnfairNone {
		spec["fairness"] = "None"
	}
	return spec
}

// limitSignal adds the limit on the signal, whose name says where it stands.
func (l Limits) limitSignal(config map[string]any) {
	number := func(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }
	switch name := (map[throttle.Signal]string{throttle.SignalCPU: "cpu", throttle.SignalIOWait: "io", throttle.SignalLoad: "loadAvg"})[l.Signal]; name {
	default:
		config[name] = map[string]any{"maxLoad": number(l.Most), "incrementBy": number(l.Increment)}
	case "":
		path := strings.Split(l.Signal.String(), ".")
		config[path[0]] = map[string]any{path[1]: map[string]any{path[2]: number(l.Most)}}
	}
}

// inWholeUnits returns a duration as the API takes it.
func inWholeUnits(d time.Duration) string {
	return fmt.Sprintf("%ds%dms", d/time.Second, d%time.Second/time.Millisecond)
}

func (l Limits) String() string {
	var words []string
	word := func(given bool, format string, args ...any) {
		if given {
			words = append(words, fmt.Sprintf(format, args...))
		}
	}
	word(true, "maxConcurrent %d", l.Concurrent)
	word(l.FillFactor > 0, "one start per %s, burst %d", l.FillFactor, max(l.Burst, 1))
	word(l.StartTimeout > 0, "startTimeout %s", l.StartTimeout)
	word(l.MaxWait > 0, "maxWait %s", l.MaxWait)
	word(l.SettleTime > 0, "settleTime %s", l.SettleTime)
	word(l.UnfairNone, "fairness None")
	word(l.NoLoans, "no loans")
	word(l.AdaptiveMin > 0, "adaptive from %d to %d", l.AdaptiveMin, l.AdaptiveMax)
	word(l.Most > 0, "%s below %g, each start adds %g", l.Signal, l.Most, l.Increment)
	word(l.Mode != "", "mode %s", l.Mode)
	return strings.Join(words, ", ")
}

// Object returns a PacemakerConfig with the limits.
func (l Limits) Object(generation int64) *unstructured.Unstructured {
	u := &unstructured.Unstructured{Object: map[string]any{
		"metadata": map[string]any{"name": "shape", "generation": generation}, "spec": l.Spec(),
	}}
	u.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(v1alpha1.Kind))
	return u
}
