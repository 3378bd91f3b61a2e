package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// PacemakerNode is the report of the daemon on one node. Only that daemon writes it, and
// it is deleted with the node. It has the name of the node; if the daemon has an instance
// name, the name of the node, a dot and the instance name.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pmn
// +kubebuilder:printcolumn:name="Config",type=string,JSONPath=`.status.config`
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.status.mode`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waiting`
// +kubebuilder:printcolumn:name="Starting",type=integer,JSONPath=`.status.starting`
// +kubebuilder:printcolumn:name="Limit",type=integer,JSONPath=`.status.limit`
// +kubebuilder:printcolumn:name="Held by",type=string,JSONPath=`.status.heldBy`
// +kubebuilder:printcolumn:name="Longest wait",type=date,JSONPath=`.status.waitingSince`
// +kubebuilder:printcolumn:name="Wait method",type=string,JSONPath=`.status.waitMethod`
// +kubebuilder:printcolumn:name="Connection",type=string,JSONPath=`.status.conditions[?(@.type=="Connected")].reason`,priority=1
// +kubebuilder:printcolumn:name="Signal",type=string,JSONPath=`.status.signal`,priority=1
// +kubebuilder:printcolumn:name="Blind",type=string,JSONPath=`.status.blind[*].signal`,priority=1
// +kubebuilder:printcolumn:name="Version",type=string,JSONPath=`.status.version`,priority=1
// +kubebuilder:printcolumn:name="Last report",type=date,JSONPath=`.status.lastReportTime`,priority=1
// +kubebuilder:printcolumn:name="Message",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
type PacemakerNode struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// status is what the daemon reports.
	// +optional
	Status PacemakerNodeStatus `json:"status,omitempty"`
}

// ConditionConnected is the condition of a PacemakerNode that says whether the container runtime asks the daemon before
// it starts anything. If it does not, pods start unpaced. The other condition is [ConditionReady]: whether pods are paced
// as the config says.
const ConditionConnected = "Connected"

// The reasons of the conditions of a PacemakerNode.
const (
	// ReasonConnected: the runtime asks the daemon.
	ReasonConnected = "Connected"
	// ReasonConnecting: the daemon tries to connect.
	ReasonConnecting = "Connecting"
	// ReasonPaced: pods are paced as the config says.
	ReasonPaced = "Paced"
	// ReasonNotPaced: they are not; the message says why.
	ReasonNotPaced = "NotPaced"
	// ReasonStopped: the daemon was stopped. Both conditions are False then.
	ReasonStopped = "Stopped"
)

// WaitMethod is how pods wait on a node.
//
// +kubebuilder:validation:Enum=Room;Gate;Refusal
type WaitMethod string

// The wait methods.
const (
	// WaitRoom: pods wait in the waiting room before their sandbox is made. Pods on the host's
	// network wait in the gate or by refusal.
	WaitRoom WaitMethod = "Room"
	// WaitGate: pods wait in a hook of the container, and start as soon as the hook ends.
	WaitGate WaitMethod = "Gate"
	// WaitRefusal: the daemon refuses the pod, and kubelet tries again.
	WaitRefusal WaitMethod = "Refusal"
)

// BlindSignal is a signal of the node that cannot be measured.
type BlindSignal struct {
	// signal is the name of the signal, like pressure.cpu.some.
	// +kubebuilder:validation:MaxLength=64
	Signal string `json:"signal"`

	// message says why the signal cannot be measured.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	Message string `json:"message,omitempty"`
}

// PacemakerNodeStatus is the report of a daemon. It has no field that changes only because
// time passes: the longest wait is reported by the time at which it began.
type PacemakerNodeStatus struct {
	// nodeName is the name of the node.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	NodeName string `json:"nodeName,omitempty"`

	// instance is the instance name of the daemon, if it has one.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	Instance string `json:"instance,omitempty"`

	// version is the version of the daemon.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Version string `json:"version,omitempty"`

	// config is the name of the PacemakerConfig that is in force on the node. Absent: none is
	// in force, and no pod is held.
	// +optional
	// +kubebuilder:validation:MaxLength=253
	Config string `json:"config,omitempty"`

	// origin is where that config came from. API: from the API server. Disk: from the API
	// server before the daemon last started, read from the node's disk. File: from the file
	// given to the daemon.
	// +optional
	// +kubebuilder:validation:MaxLength=16
	Origin string `json:"origin,omitempty"`

	// configGeneration is the generation of that config, 0 if it came from a file.
	// +optional
	// +kubebuilder:validation:Minimum=0
	ConfigGeneration int64 `json:"configGeneration,omitempty"`

	// conflicts are the names of other PacemakerConfigs with the same priority that select the
	// node too: the first 16 by name.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=253
	Conflicts []string `json:"conflicts,omitempty"`

	// mode is what happens to a start that a limit holds. Absent: no config is in force.
	// +optional
	Mode Mode `json:"mode,omitempty"`

	// conditions are Ready and Connected. Ready is True if pods are paced as the config says. Its
	// message says why they are not or, if they are, why they do not wait in the gate, and what is
	// wrong with the newest generation of the config, which is left out. Connected is True if the
	// container runtime asks the daemon before it starts anything. Its reason is Connected,
	// Connecting or Stopped. A daemon that begins to report counts the time of a condition anew.
	// +optional
	// +listType=map
	// +listMapKey=type
	// +kubebuilder:validation:MaxItems=8
	Conditions []metav1.Condition `json:"conditions,omitempty"`

	// waitMethod is how pods wait: in the Room, in the Gate, or by Refusal. Absent: the container
	// runtime does not ask the daemon now.
	// +optional
	WaitMethod WaitMethod `json:"waitMethod,omitempty"`

	// waiting is the number of pods that wait for their start.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Waiting int32 `json:"waiting"`

	// starting is the number of pods that are starting and hold a slot.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Starting int32 `json:"starting"`

	// limit is how many pods may be starting at a time. Absent: any number.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Limit int32 `json:"limit,omitempty"`

	// waitingSince is when the pod that waits longest began to wait.
	// +optional
	WaitingSince *metav1.Time `json:"waitingSince,omitempty"`

	// heldBy is the reason that holds the next start: Concurrency, Rate, CPULoad, IOLoad,
	// LoadAverage or Pressure. Absent: no pod waits, or no limit of the node holds them.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	HeldBy string `json:"heldBy,omitempty"`

	// signal is the signal of the node that holds the next start, like pressure.cpu.some.
	// Absent: no signal holds it.
	// +optional
	// +kubebuilder:validation:MaxLength=64
	Signal string `json:"signal,omitempty"`

	// blind are the signals of the node that a limit needs and that cannot be measured. A
	// limit on such a signal holds no pod, and adaptive works without the signal.
	// +optional
	// +listType=map
	// +listMapKey=signal
	// +kubebuilder:validation:MaxItems=16
	Blind []BlindSignal `json:"blind,omitempty"`

	// lastReportTime is when the daemon last wrote this status. It writes when anything else here
	// has changed, and otherwise about every ten minutes. A daemon that has not written for 30
	// minutes is gone.
	// +optional
	LastReportTime *metav1.Time `json:"lastReportTime,omitempty"`

	// policies are the StartPolicies in force on the node, at most 64, with the groups that
	// have the most pods, at most 64 in all.
	// +optional
	// +listType=map
	// +listMapKey=name
	// +kubebuilder:validation:MaxItems=64
	Policies []NodePolicy `json:"policies,omitempty"`
}

// NodeGoneAfter is how old the lastReportTime of a PacemakerNode is once its daemon counts as gone.
const NodeGoneAfter = 30 * time.Minute

// MostNodePolicies is how many policies the status of a PacemakerNode holds at most.
const MostNodePolicies = 64

// NodePolicy is the state of a StartPolicy on one node.
type NodePolicy struct {
	// name is the name of the policy.
	// +required
	// +kubebuilder:validation:MaxLength=253
	Name string `json:"name"`

	// generation is the generation of the policy that is in force.
	// +optional
	// +kubebuilder:validation:Minimum=0
	Generation int64 `json:"generation,omitempty"`

	// fault is why the policy holds no pod. Absent: the policy works.
	// +optional
	// +kubebuilder:validation:MaxLength=512
	Fault string `json:"fault,omitempty"`

	// groupCount is the number of groups that have pods.
	// +optional
	// +kubebuilder:validation:Minimum=0
	GroupCount int32 `json:"groupCount,omitempty"`

	// groups are the groups with the most pods.
	// +optional
	// +listType=map
	// +listMapKey=group
	// +kubebuilder:validation:MaxItems=32
	Groups []PolicyGroup `json:"groups,omitempty"`
}
