package policies

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	corev1 "k8s.io/api/core/v1"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/leases"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// Limiter is the part of [throttle.Limiter] that a Matcher calls.
type Limiter interface {
	SetPolicies(now time.Time, limits map[string]throttle.GroupLimits, pods ...throttle.PodGroups)
	SetGroups(now time.Time, pod throttle.PodGroups)
	Finished(now time.Time, uid string)
}

// Options say what a Matcher works with. Limiter and Log are needed.
type Options struct {
	Limiter Limiter
	// ExtractFacts makes the pod watch take facts from every pod; nil takes none. It can be
	// absent: there is no pod watch.
	ExtractFacts func(extract func(*corev1.Pod) startpolicy.Facts)
	// WatchNamespaces begins to watch the labels of namespaces and to report them to the Matcher; it
	// is called when a policy needs them first. It can be absent: they cannot be watched.
	WatchNamespaces func()
	// Claims is called with the policies of the scope Cluster, by name, before the limiter is: it
	// has to claim starts in the whole cluster, and tells the limiter by SetClaims. It
	// must not block. It can be absent: such policies hold no pod.
	Claims func(map[string]leases.Policy)
	// Notice is called for a policy that holds no pod, beside the log; it can be absent.
	// It must not block, nor call the Matcher.
	Notice func(policy, fault string)
	// Log takes what a user has to know, once.
	Log logrus.FieldLogger
}

// Pod is what a Matcher has to know of a pod.
type Pod struct {
	// UID is the pod's as the limiter knows it, Namespace the name of its namespace.
	UID, Namespace string
	// Facts are what policies ask of it. The zero value: they are not known, and the
	// pod matches as one without labels that requests nothing.
	Facts startpolicy.Facts
}

// Matcher keeps which pod is in which group. Make one with New. All methods are safe
// for concurrent use and do not block.
type Matcher struct {
	options Options
	needs   atomic.Pointer[startpolicy.Needs] // never nil
	// setting is held while policies are replaced, so that the last call has the last word.
	setting sync.Mutex

	mu         sync.Mutex
	suspended  bool
	inForce    []*v1alpha1.StartPolicy
	policies   []*startpolicy.Policy // of inForce, those that can be evaluated
	faults     map[string]string     // why a policy holds no pod, by name
	calculated map[string]startpolicy.Calculated
	limits     map[string]throttle.GroupLimits // that the limiter was told
	// By the clock, the limits are those of the time from since on and before next: a change
	// was at since, and one will be at next. Zero: there is none.
	since, next time.Time
	taking      bool // facts are taken
	namespaces  namespaces
	pods        map[string]*member // by UID
}

// member is what is known of a pod.
type member struct {
	Pod
	groups  []throttle.Membership
	running bool
	ready   bool
}

// New returns a Matcher without a policy.
func New(o Options) *Matcher {
	m := &Matcher{options: o, pods: map[string]*member{}, namespaces: namespaces{labels: map[string]map[string]string{}}}
	m.needs.Store(&startpolicy.Needs{})
	return m
}

// SetPolicies replaces the policies in force. They must not be changed afterwards. What it
// is told to compile may take its time; who asks for a pod's groups does not wait for that.
func (m *Matcher) SetPolicies(now time.Time, inForce []*v1alpha1.StartPolicy) {
	m.setting.Lock()
	defer m.setting.Unlock()
	compiled, faults := compile(inForce, m.options.Log)
	m.mu.Lock()
	defer m.mu.Unlock()
	before := m.faults
	m.inForce, m.policies, m.faults = inForce, compiled, faults
	m.askForNamespacesLocked()
	m.extractFactsLocked()
	m.limitLocked(now)
	m.sayFaultsLocked(before)
}

// compile returns the policies that can be evaluated, and why the others cannot, by name. It logs the overrides
// that are left out.
func compile(inForce []*v1alpha1.StartPolicy, log logrus.FieldLogger) (compiled []*startpolicy.Policy, faults map[string]string) {
	faults = map[string]string{}
	for _, one := range inForce {
		policy, errs := startpolicy.Compile(one)
		if len(errs) > 0 {
			faults[one.Name] = errs.ToAggregate().Error()
			continue
		}
		for _, o := range policy.Invalid() {
			log.WithFields(logrus.Fields{"policy": one.Name, "field": o.Path}).Warn("a temporary override of the StartPolicy is left out: " + o.Message)
		}
		compiled = append(compiled, policy)
	}
	return compiled, faults
}

// Suspend takes all policies out of force, or puts them back: the node's mode is Off,
// or is not any more.
func (m *Matcher) Suspend(now time.Time, suspended bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.suspended != suspended {
		m.suspended = suspended
		m.limitLocked(now)
	}
}

// Advance follows the overrides of the policies by time, and says when it wants to
// be called next; zero: not before the policies change. The clock may be set, forward or
// back, so it has to be called from time to time as well: it is that often that this is
// noticed.
func (m *Matcher) Advance(now time.Time) (next time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if now.Before(m.since) || !m.next.IsZero() && !now.Before(m.next) {
		m.limitLocked(now)
	}
	return m.next
}

// limitLocked tells the limiter the limits of now, and whose groups have changed. m.mu
// must be held.
func (m *Matcher) limitLocked(now time.Time) {
	before := m.calculated
	m.since, m.next, m.calculated = time.Time{}, time.Time{}, make(map[string]startpolicy.Calculated, len(m.policies))
	limits := make(map[string]throttle.GroupLimits, len(m.policies))
	claims := map[string]leases.Policy{}
	for _, policy := range m.policies {
		c := policy.LimitsAt(now)
		m.calculated[policy.Name] = c
		if !c.Next.IsZero() && (m.next.IsZero() || c.Next.Before(m.next)) {
			m.next = c.Next
		}
		if c.Since.After(m.since) {
			m.since = c.Since
		}
		if b, known := before[policy.Name]; known && !b.Since.Equal(c.Since) {
			m.options.Log.WithField("policy", policy.Name).Info("a temporary override of the StartPolicy began or ended")
		}
		if !m.suspended && m.faults[policy.Name] == "" {
			limits[policy.Name] = LimitsOf(c.Limits, policy.Scope)
			if policy.Scope == v1alpha1.ScopeCluster {
				claims[policy.Name] = claimOf(policy, c.Limits)
			}
		}
	}
	if m.options.Claims != nil {
		m.options.Claims(claims)
	}
	m.limits = limits
	m.options.Limiter.SetPolicies(now, limits, m.regroupLocked()...)
}

// extractFactsLocked makes the pod watch take what the policies ask of pods, if that is not
// what it takes. m.mu must be held.
func (m *Matcher) extractFactsLocked() {
	var needs startpolicy.Needs
	for _, policy := range m.policies {
		needs.Add(policy)
	}
	if m.taking == (len(m.policies) > 0) && m.Needs().Covers(needs) {
		return
	}
	m.taking = len(m.policies) > 0
	m.needs.Store(&needs)
	switch {
	case m.options.ExtractFacts == nil:
	case !m.taking:
		m.options.ExtractFacts(nil)
	default:
		m.options.ExtractFacts(func(pod *corev1.Pod) startpolicy.Facts { return startpolicy.FactsOf(pod, needs) })
	}
}

// Needs returns what the policies ask of pods, or asked a while ago: facts that are
// taken with it are enough for all that are in force.
func (m *Matcher) Needs() startpolicy.Needs { return *m.needs.Load() }

// sayFaultsLocked logs the faults that are new. m.mu must be held.
func (m *Matcher) sayFaultsLocked(before map[string]string) {
	for name, fault := range m.faults {
		if fault != before[name] {
			m.options.Log.WithFields(logrus.Fields{"policy": name, "reason": fault}).Warn("the StartPolicy cannot be evaluated: it holds no pod")
			if m.options.Notice != nil {
				m.options.Notice(name, fault)
			}
		}
	}
	for name := range before {
		if m.faults[name] == "" {
			m.options.Log.WithField("policy", name).Info("the StartPolicy can be evaluated again, or is gone")
		}
	}
}
