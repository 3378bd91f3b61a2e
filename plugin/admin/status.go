package admin

import (
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Seconds is a time span in seconds.
type Seconds float64

// Duration returns the time span, to the microsecond.
func (s Seconds) Duration() time.Duration {
	return time.Duration(float64(s) * float64(time.Second)).Round(time.Microsecond)
}

// seconds rounds to the millisecond.
func seconds(d time.Duration) Seconds {
	return Seconds(d.Round(time.Millisecond).Seconds())
}

// About is the state of a daemon and its node without single pods. [Status] and [Overview] share it.
type About struct {
	// Time is when the state was taken.
	Time time.Time `json:"time"`
	// Node is the node's name. Instance is the daemon's name if several run on the node.
	Node     string `json:"node"`
	Instance string `json:"instance,omitempty"`
	// Version is the program's version, and Commit the commit of its sources. Since is when this process started.
	Version string    `json:"version"`
	Commit  string    `json:"commit,omitempty"`
	Since   time.Time `json:"since"`
	// Standalone reports whether the daemon works without an API server, by the runtime and a file.
	Standalone bool `json:"standalone"`
	// Ready reports whether pods are paced. NotReady is why this daemon does not pace them; absent if it does. If Ready is
	// true and NotReady is set, another daemon paces them. The server sets both from Provider.Ready.
	Ready    bool   `json:"ready"`
	NotReady string `json:"notReady,omitempty"`

	Runtime Runtime `json:"runtime"`
	// PodWatch is the state of the watch of pods; absent if Standalone.
	PodWatch *PodWatch `json:"podWatch,omitempty"`
	// Unread are the kinds of objects that the daemon cannot read in the API server now. What it has read before stays in
	// force.
	Unread []Unread `json:"unread,omitempty"`
	Config Config   `json:"config"`
	// Cores are the CPUs that pods can use.
	Cores Cores `json:"cores"`
	// Signals are all signals of the node, with or without a limit, in the order of [throttle.Signal].
	Signals []Signal `json:"signals,omitempty"`
	Gate    Gate     `json:"gate"`
	Room    Room     `json:"room"`
	Refused Refused  `json:"refused"`

	// SettledBusy counts, since the daemon started, the starts of pods without a readiness or startup probe that were over
	// after settleTime, while the pod still kept a CPU busy: the limit counts such starts for too short a time.
	SettledBusy uint64 `json:"settledBusy,omitempty"`

	// Limits describes the limits in a sentence. Config.Spec has the numbers.
	Limits string `json:"limits"`
	// MaxWaitSeconds is how long a pod waits before it may start over the limit.
	MaxWaitSeconds Seconds `json:"maxWaitSeconds"`
	// Adaptive describes how the adaptive limit found its value; absent if that limit is not set.
	Adaptive string `json:"adaptive,omitempty"`
	// HeldBy is the limit of the node that holds the next start; absent if none does. What a StartPolicy holds is in
	// Held of each pod.
	HeldBy *Held `json:"heldBy,omitempty"`
	Pace   Pace  `json:"pace"`
}

// Cores are the CPUs that pods can use.
type Cores struct {
	// Usable is how many pods can use at a time, and Node how many the node has.
	Usable int `json:"usable"`
	Node   int `json:"node"`
	// Why is why pods can use no more; absent if they can use all.
	Why string `json:"why,omitempty"`
}

// StartAfter is an entry of startAfter in a PacemakerConfig.
type StartAfter struct {
	// For is the DaemonSet as "namespace/name", or the namespace with the selector.
	For string `json:"for"`
	// State is Waiting, Ready (one of the pods is, or was once), Absent (there is none on the node) or TimedOut (none is
	// ready, and no pod waits for it any more).
	State string `json:"state"`
	// Until is when pods wait for it no longer; absent unless the State is Waiting.
	Until time.Time `json:"until,omitzero"`
}

// Status is the whole state of a daemon and its node. It names pods, so only root and the daemon's user may read it.
type Status struct {
	About

	// Limit is the current limit of concurrent starts, without the Lent slots beyond it; 0 means no limit.
	Limit int `json:"limit"`
	Lent  int `json:"lent"`
	// Pulling is the number of pods between their sandbox and their first container. PullingLimit is the limit of it;
	// 0 means no limit.
	Pulling      int `json:"pulling"`
	PullingLimit int `json:"pullingLimit,omitempty"`

	// StartAfter are the pods for which others wait after a boot, by the configuration in force.
	StartAfter []StartAfter `json:"startAfter,omitempty"`

	// Policies are the StartPolicies that apply on the node.
	Policies []Policy `json:"policies,omitempty"`

	// Starting are the pods that hold a slot, then those that start without one. Waiting is the queue in its
	// order. Preparing are the pods that have a place in the queue and that nothing holds, because kubelet pulls their
	// images or cannot make their first container yet. Ended are the starts that ended last, the latest first.
	Starting  []Pod `json:"starting"`
	Waiting   []Pod `json:"waiting"`
	Preparing []Pod `json:"preparing,omitempty"`
	Ended     []Pod `json:"ended"`
}

// Runtime describes the container runtime and the connection to it.
type Runtime struct {
	// Name and Version are those that the runtime reports; empty until the first connection.
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	// Socket is the runtime's NRI socket.
	Socket    string `json:"socket"`
	Connected bool   `json:"connected"`
	// RequestTimeoutSeconds is how long the runtime waits for an answer of the daemon, and RegistrationTimeoutSeconds how
	// long for its registration. Each is 0 until it is known. TimeoutWarning is what is wrong with RequestTimeoutSeconds;
	// empty if nothing is.
	RequestTimeoutSeconds      Seconds `json:"requestTimeoutSeconds,omitempty"`
	RegistrationTimeoutSeconds Seconds `json:"registrationTimeoutSeconds,omitempty"`
	TimeoutWarning             string  `json:"timeoutWarning,omitempty"`
	// Synchronized reports whether the runtime has listed the pods that it runs.
	Synchronized bool `json:"synchronized"`
	// LastError is why the connection does not let the daemon pace pods, such as its last error; empty if it is connected
	// and synchronized. NotReady can have another reason.
	LastError string `json:"lastError,omitempty"`
}

// Unread is a kind of objects that cannot be read, since when, and why.
type Unread struct {
	What  string    `json:"what"`
	Since time.Time `json:"since"`
	Why   string    `json:"why"`
}

// PodWatch is the state of the watch of pods. Healthy reports whether what the daemon knows of the pods is up to date.
type PodWatch struct {
	Healthy bool `json:"healthy"`
}

// Config is the PacemakerConfig in force.
type Config struct {
	// Origin is API, Disk, File or None. Disk is the last config of the API server, until that answers. Name is
	// empty with None.
	Name   string `json:"name,omitempty"`
	Origin string `json:"origin"`
	// Generation is the generation of the API object; 0 for a file.
	Generation int64 `json:"generation,omitempty"`
	// Mode is Enforce, Shadow (no pod is held, but the daemon reports what Enforce would do) or Disabled (no limits). It is
	// absent with None, unless the daemon is switched off.
	Mode v1alpha1.Mode `json:"mode,omitempty"`
	// OffUntil is until when the mode is Disabled because of `pod-pacemaker off`, whatever Name says; absent: it is not.
	OffUntil time.Time `json:"offUntil,omitzero"`
	// Spec is the spec of the config; absent with None.
	Spec *v1alpha1.PacemakerConfigSpec `json:"spec,omitempty"`
}

// Room describes the waiting room, where pods wait before their sandbox exists.
type Room struct {
	// Use is the flag --cni: auto, on or off. Wanted reports whether the daemon may install it.
	Use    string `json:"use"`
	Wanted bool   `json:"wanted"`
	// Installed reports whether pods pass through it. WhyNot is why not, or why no pod waits there.
	Installed bool   `json:"installed"`
	WhyNot    string `json:"whyNot,omitempty"`
	// Source is the CNI configuration that the installed one is a copy of.
	Source string `json:"source,omitempty"`
	// Waiters is the number of pods that wait there.
	Waiters int `json:"waiters"`
	// Emptied is how often the folder of CNI configurations changed. Each time all pods leave the room.
	Emptied int `json:"emptied,omitempty"`
}

// Gate describes the hook in which containers wait.
type Gate struct {
	// Use is the flag --gate: auto, always or never. Path is the hook's path on the host.
	Use  string `json:"use"`
	Path string `json:"path,omitempty"`
	// Usable reports whether containers may wait there. If not, WhyNot is the reason.
	Usable bool   `json:"usable"`
	WhyNot string `json:"whyNot,omitempty"`
	// Waiters is the number of hooks that wait.
	Waiters int `json:"waiters"`
	// TimeoutSeconds is the longest time of one wait.
	TimeoutSeconds Seconds `json:"timeoutSeconds"`
	// Expired counts the waits since the daemon started that ended without a turn.
	Expired uint64 `json:"expired"`
}

// Refused counts the refusals since the daemon started. kubelet retries, unless the pod is deleted or the node shuts
// down.
type Refused struct {
	Sandbox   uint64 `json:"sandbox"`
	Container uint64 `json:"container"`
	// SandboxesLeft is how many sandboxes may be refused at once now. There is a limit, because each has taken an address.
	SandboxesLeft int `json:"sandboxesLeft"`
	// NotAtSandbox is why the runtime does not allow refusals at the sandbox; empty if it does.
	NotAtSandbox string `json:"notAtSandbox,omitempty"`
}

// Held is the limit that holds a start, with its measure.
type Held struct {
	Reason reasons.Reason `json:"reason"`
	// Detail is the measure as text, like "2 of 2 starting".
	Detail string `json:"detail,omitempty"`
	// Policy and Group name the StartPolicy that holds the start, for Unadmittable and the reasons that begin with
	// Policy.
	Policy string `json:"policy,omitempty"`
	Group  string `json:"group,omitempty"`
	// Signal is the signal that is too high, for CPULoad, IOLoad, LoadAverage and Pressure.
	Signal string `json:"signal,omitempty"`
	// Measured and Threshold are in the unit of the limit; see [throttle.Held].
	Measured  float64 `json:"measured"`
	Threshold float64 `json:"threshold"`
	// Until is when the limit allows the next start without any other event; absent if unknown.
	Until time.Time `json:"until,omitzero"`
}

// Pace is the expected time between two admissions.
type Pace struct {
	// Seconds is 0 if no limit is set.
	Seconds Seconds `json:"seconds"`
	// Observed is false while the pace is a guess, because too few starts were seen.
	Observed bool `json:"observed"`
}

// Pod is the start of one pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Priority  int32  `json:"priority"`

	State throttle.State `json:"state"`
	// Reason explains the state: what a Waiting pod waits for, why a Starting pod was admitted, how the start of a
	// Started or Gone pod ended.
	Reason reasons.Reason `json:"reason"`
	// Admission is why the pod was admitted; absent if it was not.
	Admission reasons.Reason `json:"admission,omitempty"`
	// Held is the measure behind the reason of a Waiting pod.
	Held *Held `json:"held,omitempty"`
	// Place is the place of a Waiting pod in the queue, from 1.
	Place int `json:"place,omitempty"`
	// Present reports whether a process waits for the pod's admission: its hook in the gate, or its process in the
	// waiting room if the pod cannot wait in the gate. A Waiting pod that is neither Present nor InRoom was refused,
	// and kubelet will retry it, unless its Reason is Preparing.
	Present bool `json:"present"`
	// InRoom reports whether the pod waits in the waiting room, before its sandbox exists.
	InRoom bool `json:"inRoom,omitempty"`
	// Shadow reports whether the pod was not held because the mode was Shadow. The other fields are then what
	// Enforce would have done.
	Shadow bool `json:"shadow,omitempty"`
	// Slot reports whether the start holds a slot.
	Slot bool `json:"slot"`

	// Joined, Admitted and Ended are when the pod joined the queue, was admitted, and when its start ended; absent if
	// that has not happened.
	Joined time.Time `json:"joined"`
	// Since is when the wait began: when the pod joined the queue, or later by the time in which kubelet prepared it.
	Since    time.Time `json:"since"`
	Admitted time.Time `json:"admitted,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	// WaitedSeconds is how long the pod waited, without the time that kubelet needed to prepare it; for a Waiting pod,
	// up to now. StartSeconds is how long its start took; for a Starting pod, up to now; absent if it was not admitted, or was
	// Adopted and has ended otherwise than Stuck.
	WaitedSeconds Seconds `json:"waitedSeconds"`
	StartSeconds  Seconds `json:"startSeconds,omitempty"`
	// ExpectedSeconds is the expected time until a Waiting pod is admitted; 0 if unknown. ExpectedBasis is
	// what it is based on.
	ExpectedSeconds Seconds       `json:"expectedSeconds,omitempty"`
	ExpectedBasis   ExpectedBasis `json:"expectedBasis,omitempty"`

	// Cost is what the start of a Waiting or Starting pod is expected to take; absent if the pod watch does not
	// know the pod.
	Cost *Cost `json:"cost,omitempty"`

	// Restarts is how often the container exited before this start.
	Restarts int `json:"restarts,omitempty"`
	// NoProgressSince is when a Starting pod stopped making progress; absent if it makes progress or is not measured.
	NoProgressSince time.Time `json:"noProgressSince,omitzero"`
}

// Cost is what a start is expected to take, learned from similar starts on this node.
type Cost struct {
	// Basis is how they are similar: Owner (the same template), Image (the same images and commands), Revisions (other
	// templates of the same owner), Namespace (all starts of the namespace) or None (nothing is known).
	Basis string `json:"basis"`
	// Cost is absent with the basis None.
	*costs.Cost
	// KilledAfterSeconds is the time after which a probe kills the pod's first container at the earliest, if that does not
	// come up; absent if no probe does.
	KilledAfterSeconds Seconds `json:"killedAfterSeconds,omitempty"`
}

// Costs is what starts took on this node, by keys that describe similar starts.
type Costs struct {
	Machine costs.Machine         `json:"machine"`
	Costs   map[string]costs.Cost `json:"costs"`
}

// Why explains why one pod waits or started.
type Why struct {
	Pod
	// Time is when the answer was given.
	Time time.Time `json:"time"`
	// Of is the number of pods that wait; only for a Waiting pod.
	Of int `json:"of,omitempty"`
	// PaceObserved is false if ExpectedSeconds is a guess.
	PaceObserved bool `json:"paceObserved"`
}

// ExpectedBasis is what the expected time until an admission is based on. Cost.Basis is the one of the expected cost.
type ExpectedBasis string

// The bases of ExpectedSeconds.
const (
	// BasisObserved means that the wait is computed from starts that ended, or from the rate limit.
	BasisObserved ExpectedBasis = "observed"
	// BasisNone means that no start has ended yet, and the wait is a guess.
	BasisNone ExpectedBasis = "none yet"
	// BasisPolicy means that a StartPolicy holds the pod for an unknown time. The estimate is the end of its maxWait, or
	// unknown if maxWait does not pass this limit.
	BasisPolicy ExpectedBasis = "a policy holds it"
)
