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

// seconds rounds to the millisecond: more digits only look exact.
func seconds(d time.Duration) Seconds {
	return Seconds(d.Round(time.Millisecond).Seconds())
}

// Mode says where the daemon learns of pods and of its configuration.
type Mode string

// The modes.
const (
	// Cluster: from the API server.
	Cluster Mode = "cluster"
	// Standalone: from the runtime and a file alone.
	Standalone Mode = "standalone"
)

// About is how a daemon and its node are at one moment, without a word on single
// pods: what [Status] and [Overview] have in common.
type About struct {
	// Time is the moment.
	Time time.Time `json:"time"`
	// Node is the node's name; Instance is the daemon's name where several run on it.
	Node     string `json:"node"`
	Instance string `json:"instance,omitempty"`
	// Version is the program's version, Since when this process started.
	Version string    `json:"version"`
	Since   time.Time `json:"since"`
	Mode    Mode      `json:"mode"`
	// Ready: pods are paced, as /readyz says; else NotReady says why not. The
	// server fills both from Provider.Ready.
	Ready    bool   `json:"ready"`
	NotReady string `json:"notReady,omitempty"`

	Runtime Runtime `json:"runtime"`
	// PodWatch is how well the API server is heard; absent when standalone.
	PodWatch *PodWatch `json:"podWatch,omitempty"`
	Config   Config    `json:"config"`
	// Signals are what is measured of the node, limited or not, in the order of
	// [throttle.Signal].
	Signals []Signal `json:"signals,omitempty"`
	Gate    Gate     `json:"gate"`
	Room    Room     `json:"room"`
	Refused Refused  `json:"refused"`

	// Limits says the limits in force in a sentence; Config.Spec has their numbers.
	Limits string `json:"limits"`
	// MaxWaitSeconds is how long a pod waits at most.
	MaxWaitSeconds Seconds `json:"maxWaitSeconds"`
	// Adaptive says what the number of starts at a time was found by; absent where it
	// is not found by itself.
	Adaptive string `json:"adaptive,omitempty"`
	// HeldBy is the limit that holds the next start back; absent: none does.
	HeldBy *Held `json:"heldBy,omitempty"`
	Pace   Pace  `json:"pace"`
}

// Status is everything that a daemon tells about itself and its node, for those who
// may know of all pods.
type Status struct {
	About

	// Limit is how many may start at a time now, without the Lent slots beyond it; 0:
	// any number.
	Limit int `json:"limit"`
	Lent  int `json:"lent"`
	// Pulling is how many pods are between their sandbox and their first container, PullingLimit how many
	// may be; 0: any number.
	Pulling      int `json:"pulling"`
	PullingLimit int `json:"pullingLimit,omitempty"`

	// Policies are the StartPolicies in force.
	Policies []Policy `json:"policies,omitempty"`

	// Starting are the pods that hold a slot, then those that start without one;
	// Waiting is the queue in its order; Ended are those that ended last, the
	// latest first.
	Starting []Pod `json:"starting"`
	Waiting  []Pod `json:"waiting"`
	Ended    []Pod `json:"ended"`
}

// Runtime is the container runtime and the connection to it.
type Runtime struct {
	// Name and Version are what the runtime calls itself; empty until it was
	// reached once.
	Name    string `json:"name,omitempty"`
	Version string `json:"version,omitempty"`
	// Socket is the runtime's NRI socket.
	Socket    string `json:"socket"`
	Connected bool   `json:"connected"`
	// Synchronized: the runtime has listed the pods that it runs.
	Synchronized bool `json:"synchronized"`
	// LastError is why the connection was lost or not made, last; empty: it never
	// was lost.
	LastError string `json:"lastError,omitempty"`
}

// PodWatch is how well the API server is heard.
type PodWatch struct {
	Healthy bool `json:"healthy"`
}

// Config is the PacemakerConfig in force.
type Config struct {
	// Origin is API, Disk (what the API server said last, before it has answered
	// this time), File or None; Name is empty with None.
	Name   string `json:"name,omitempty"`
	Origin string `json:"origin"`
	// Generation is that of the API's object, 0 for a file of the administrator.
	Generation int64 `json:"generation,omitempty"`
	// Mode is Enforce, Shadow (nothing is held, what would be is reported) or Off (there
	// are no limits).
	Mode v1alpha1.Mode `json:"mode"`
	// Spec is what it says, absent with None.
	Spec *v1alpha1.PacemakerConfigSpec `json:"spec,omitempty"`
}

// Room is the waiting room, in which pods wait before their sandbox.
type Room struct {
	// Wanted: the daemon was told to install it.
	Wanted bool `json:"wanted"`
	// Installed: pods pass it. WhyNot says why not, or why none waits there.
	Installed bool   `json:"installed"`
	WhyNot    string `json:"whyNot,omitempty"`
	// Source is the CNI configuration that was copied.
	Source string `json:"source,omitempty"`
	// Waiters is how many pods wait there now.
	Waiters int `json:"waiters"`
	// Emptied is how often the folder of the CNI configurations changed, upon which all leave it.
	Emptied int `json:"emptied,omitempty"`
}

// Gate is the hook in which containers wait.
type Gate struct {
	// Mode is auto, always or never, as configured; Path is the hook's path on
	// the host.
	Mode string `json:"mode"`
	Path string `json:"path,omitempty"`
	// Usable: containers may wait there; else WhyNot says why none may.
	Usable bool   `json:"usable"`
	WhyNot string `json:"whyNot,omitempty"`
	// Waiters is how many hooks wait now.
	Waiters int `json:"waiters"`
	// TimeoutSeconds bounds one wait.
	TimeoutSeconds Seconds `json:"timeoutSeconds"`
}

// Refused counts the refusals since the daemon started, each of which kubelet
// answers by trying again.
type Refused struct {
	Sandbox   uint64 `json:"sandbox"`
	Container uint64 `json:"container"`
	// CPUShare is the share of the node's CPU time that refusals cost over the last
	// minute, from 0 to 1, estimated from what they cost on a small node.
	CPUShare float64 `json:"cpuShare,omitzero"`
	// NotAtSandbox is why nothing is refused at the sandbox, whatever the options say;
	// empty: the runtime bears it.
	NotAtSandbox string `json:"notAtSandbox,omitempty"`
}

// Held says which limit holds a start back, and by what measure.
type Held struct {
	Reason reasons.Reason `json:"reason"`
	// Detail is the measure for people, like "2 of 2 starting".
	Detail string `json:"detail,omitempty"`
	// Policy and Group are those that hold it, of the reasons that begin with Policy, and
	// of Unadmittable.
	Policy string `json:"policy,omitempty"`
	Group  string `json:"group,omitempty"`
	// Signal is which signal is too high, of Pressure and the limits of load.
	Signal string `json:"signal,omitempty"`
	// Measured and Threshold are in the unit of the limit; see throttle.Held.
	Measured  float64 `json:"measured"`
	Threshold float64 `json:"threshold"`
	// Until is when the limit allows one more start by itself; absent: not known.
	Until time.Time `json:"until,omitzero"`
}

// Pace is the expected time between two admissions.
type Pace struct {
	// Seconds is 0 where no limit is set.
	Seconds Seconds `json:"seconds"`
	// Observed is false while no start has ended yet and the pace is a guess.
	Observed bool `json:"observed"`
}

// Pod is the start of one pod.
type Pod struct {
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UID       string `json:"uid"`
	Priority  int32  `json:"priority"`

	State throttle.State `json:"state"`
	// Reason is why it is in its state: what a Waiting pod waits for, why a
	// Starting one was admitted, how a Started or Gone one ended.
	Reason reasons.Reason `json:"reason"`
	// Admission is why it was admitted; absent: it was not.
	Admission reasons.Reason `json:"admission,omitempty"`
	// Held is the measure behind the reason of a Waiting pod.
	Held *Held `json:"held,omitempty"`
	// Place counts from 1, of Waiting pods only.
	Place int `json:"place,omitempty"`
	// Present: its hook waits in the gate, and the process starts when the pod is admitted.
	// A Waiting pod that is not was refused, and kubelet will come back for it, unless it is InRoom.
	Present bool `json:"present"`
	// InRoom: it waits in the waiting room, before its sandbox.
	InRoom bool `json:"inRoom,omitempty"`
	// Shadow: its process went on at once, for the mode is Shadow; all else here is
	// what would have been with the mode Enforce.
	Shadow bool `json:"shadow,omitempty"`
	// Slot: it counts among the starts at a time.
	Slot bool `json:"slot"`

	// Joined, Admitted and Ended are when it joined the queue, was admitted and
	// ended; absent: it was not, yet.
	Joined   time.Time `json:"joined"`
	Admitted time.Time `json:"admitted,omitzero"`
	Ended    time.Time `json:"ended,omitzero"`
	// WaitedSeconds is how long it waited, up to now for a Waiting one;
	// StartSeconds how long its start took, up to now for a Starting one, 0 if it
	// never began.
	WaitedSeconds Seconds `json:"waitedSeconds"`
	StartSeconds  Seconds `json:"startSeconds,omitempty"`
	// ExpectedSeconds is the time until a Waiting pod is admitted if the pace
	// stays; 0: not known. Basis is what that rests on: observed, or none yet.
	ExpectedSeconds Seconds `json:"expectedSeconds,omitempty"`
	Basis           Basis   `json:"basis,omitempty"`

	// Cost is what its start is expected to take, of Waiting and Starting pods; absent: the pod watch does
	// not know the pod.
	Cost *Cost `json:"cost,omitempty"`

	// Repeats is how often its container exited before this start of it.
	Repeats int `json:"repeats,omitempty"`
	// StalledSince is since when a Starting pod makes no progress; absent: it does,
	// or it is not measured.
	StalledSince time.Time `json:"stalledSince,omitzero"`
}

// Cost is what a start is expected to take, by what starts like it took on this node.
type Cost struct {
	// Basis is how they were like it: Owner (the same template), Image (the same images and commands), Revisions
	// (other templates of the same owner), Node (all starts of the node: not known) or None (not known).
	Basis string `json:"basis"`
	// Cost is absent with the basis None.
	*costs.Cost
	// PatienceSeconds is how long after it was started its first container is killed by a probe if it does
	// not come up; absent: none is.
	PatienceSeconds Seconds `json:"patienceSeconds,omitempty"`
}

// Costs is what starts took on this node, by keys that say how they were alike.
type Costs struct {
	Machine costs.Machine         `json:"machine"`
	Costs   map[string]costs.Cost `json:"costs"`
}

// Why is why one pod waits or started.
type Why struct {
	Pod
	// Time is the moment of the answer.
	Time time.Time `json:"time"`
	// Of is how many pods wait, of Waiting pods only.
	Of int `json:"of,omitempty"`
	// PaceObserved is false while ExpectedSeconds is a guess.
	PaceObserved bool `json:"paceObserved"`
}

// Error is the body of an answer that is not 200.
type Error struct {
	Error string `json:"error"`
}

// Basis says what an estimate rests on.
type Basis string

// What an estimate rests on.
const (
	// BasisObserved: on starts that ended, or on a rate that is set.
	BasisObserved Basis = "observed"
	// BasisNone: on nothing yet; it is a guess.
	BasisNone Basis = "none yet"
	// BasisPolicy: a policy holds the pod, and it is not known for how long. What is expected
	// is that its MaxWait is over, when a limit may be passed; nothing, where none passes it.
	BasisPolicy Basis = "a policy holds it"
)
