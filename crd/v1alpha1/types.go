package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PacemakerConfig says how fast pods may start on the nodes that it selects.
// Of all that select a node, one is in force there: the one with the highest
// priority, and among equals the one whose name comes first. Where several
// daemons run on a node, that is so for each of them; see instance.
//
// +kubebuilder:object:root=true
// +kubebuilder:resource:scope=Cluster,shortName=pmc
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Concurrent",type=integer,JSONPath=`.spec.throttleConfig.maxConcurrent.value`
// +kubebuilder:printcolumn:name="Per core",type=string,JSONPath=`.spec.throttleConfig.maxConcurrent.perCore`
// +kubebuilder:printcolumn:name="One start per",type=string,JSONPath=`.spec.throttleConfig.rateLimit.fillFactor`
// +kubebuilder:printcolumn:name="Adaptive",type=string,JSONPath=`.spec.throttleConfig.adaptive`,priority=1
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.throttleConfig.cpu.maxLoad`,priority=1
// +kubebuilder:printcolumn:name="CPU pressure",type=string,JSONPath=`.spec.throttleConfig.pressure.cpu.some`,priority=1
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`,priority=1
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.spec.instance`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PacemakerConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata; the name is required.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is what the user asks for. An empty one selects every node and holds
	// no pod back.
	// +optional
	// +kubebuilder:default={}
	Spec PacemakerConfigSpec `json:"spec,omitempty"`
}

// PacemakerConfigList is a list of PacemakerConfig objects.
//
// +kubebuilder:object:root=true
type PacemakerConfigList struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard list metadata.
	// +optional
	metav1.ListMeta `json:"metadata,omitempty"`

	// items are the objects.
	Items []PacemakerConfig `json:"items"`
}

// PacemakerConfigSpec is what the user asks for.
//
// +kubebuilder:validation:XValidation:rule="!has(self.startTimeout) || !has(self.settleTime) || !self.startTimeout.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || !self.settleTime.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.startTimeout) < duration('1s') || duration(self.settleTime) < duration(self.startTimeout)",message="must be shorter than startTimeout",fieldPath=".settleTime"
type PacemakerConfigSpec struct {
	// mode says what is done with a start that a limit holds: with Enforce it
	// waits; with Shadow it goes on at once, and how long it would have waited is
	// reported; with "Off" (in quotes: YAML takes a bare one for false) no limit is
	// in force at all, and those that wait go on at once. Default Enforce.
	// +optional
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`

	// instance is the name of the daemon that this config is for, as given to it
	// with --instance, for nodes on which several run side by side. A daemon
	// follows the configs with its own name and no others; absent: this config is
	// for daemons without one. At most 63 lower case letters, digits and '-'.
	// Advanced.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a daemon's instance: lower case letters, digits and '-'"
	Instance string `json:"instance,omitempty"`

	// nodeSelector holds the labels that a node must have, each with exactly
	// this value, for this config to concern it. Empty or absent: every node.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="every key must be a label name, like \"node.kubernetes.io/instance-type\""
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// priority decides between configs that select the same node: the highest
	// wins, and among equals the one whose name comes first. From -1000000 to
	// 1000000, default 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`

	// throttleConfig holds the limits. A start must be allowed by every limit
	// that is set; where none is set, no pod is held back.
	// +optional
	ThrottleConfig ThrottleConfig `json:"throttleConfig,omitempty"`

	// startTimeout is how long a start may hold its slot. A pod that is not
	// ready by then is stuck: it no longer counts. From 1s to 24h, default 5m.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration from 1s to 24h in whole h, m, s or ms, like \"5m\""
	StartTimeout *Duration `json:"startTimeout,omitempty"`

	// fairness says which pods share their turns. With Namespace, of the pods of
	// the same priority that wait, the next is of the namespace with the fewest
	// pods starting; with None, it is the one that came first. Default Namespace.
	// Advanced.
	// +optional
	// +kubebuilder:default=Namespace
	Fairness Fairness `json:"fairness,omitempty"`

	// maxWait is how long a pod may wait for its start before its deadline is
	// over. Such pods are started over the limit, one at a time; while others
	// wait, every second slot is theirs. So the k-th of them starts at most
	// 2*k times startTimeout later. From 1s to 24h, default 10m.
	// +optional
	// +kubebuilder:default="10m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration from 1s to 24h in whole h, m, s or ms, like \"5m\""
	MaxWait *Duration `json:"maxWait,omitempty"`

	// settleTime is how long a pod without readiness or startup probe keeps its
	// slot after all its containers run. From 0s to 1h and shorter than
	// startTimeout, default 5s. Advanced.
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) <= duration('1h')",message="must be a duration from 0s to 1h in whole h, m, s or ms, like \"5s\""
	SettleTime *Duration `json:"settleTime,omitempty"`

	// restarts say how containers that exited are started again.
	// +optional
	// +kubebuilder:default={}
	Restarts Restarts `json:"restarts,omitzero"`

	// exemptions say which pods never wait, beside static pods, which never do.
	// +optional
	// +kubebuilder:default={}
	Exemptions Exemptions `json:"exemptions,omitempty"`
}

// Mode says what is done with a start that a limit holds.
//
// +kubebuilder:validation:Enum=Enforce;Shadow;Off
type Mode string

// The modes.
const (
	// ModeEnforce makes it wait.
	ModeEnforce Mode = "Enforce"
	// ModeShadow lets it go on, and reports what Enforce would have done.
	ModeShadow Mode = "Shadow"
	// ModeOff has no limits: the switch to pull when pacing itself is suspected.
	ModeOff Mode = "Off"
)

// Fairness says which pods share their turns.
//
// +kubebuilder:validation:Enum=Namespace;None
type Fairness string

// The kinds of fairness.
const (
	// FairnessNamespace has namespaces take turns.
	FairnessNamespace Fairness = "Namespace"
	// FairnessNone serves the pods as they come.
	FairnessNone Fairness = "None"
)

// LabelValue is the value of a label: at most 63 letters, digits, '-', '_' and
// '.', beginning and ending with a letter or digit; it can be empty.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:Pattern=`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`
type LabelValue string

// Exemptions say which pods never wait.
type Exemptions struct {
	// namespaces lists the namespaces whose pods never wait, at most 64. Absent:
	// kube-system. An empty list exempts none.
	// +optional
	// +listType=set
	// +kubebuilder:default={"kube-system"}
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?$`
	Namespaces []string `json:"namespaces,omitzero"`

	// daemonSets say in which namespaces the pods of DaemonSets never wait.
	// +optional
	// +kubebuilder:default={}
	DaemonSets ExemptIn `json:"daemonSets,omitzero"`

	// criticalPods say in which namespaces the pods of the priority classes
	// system-node-critical and system-cluster-critical never wait.
	// +optional
	// +kubebuilder:default={}
	CriticalPods ExemptIn `json:"criticalPods,omitzero"`

	// allowSkipAnnotation lets pods exempt themselves by the annotation
	// pod-pacemaker.io/skip: "true". Default false.
	// +optional
	// +kubebuilder:default=false
	AllowSkipAnnotation bool `json:"allowSkipAnnotation,omitempty"`
}

// ExemptIn says in which namespaces a kind of pods never waits.
type ExemptIn struct {
	// namespaces lists the namespaces, at most 64. A '*' at the beginning or at the
	// end stands for anything, and alone for every namespace. Absent: kube-*,
	// *-system and pod-pacemaker. An empty list exempts none.
	// +optional
	// +listType=set
	// +kubebuilder:default={"kube-*","*-system","pod-pacemaker"}
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:Pattern=`^([*]|([*]-?)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(-?[*])?)$`
	Namespaces []string `json:"namespaces,omitzero"`
}

// Restarts say how containers that exited are started again.
type Restarts struct {
	// pace makes a container that exited wait before it starts again, unless another
	// app container of its pod is running. It waits as a start of its own, behind all
	// pods of the same priority that exited less often. With false it starts at once,
	// as without the daemon, and is counted. Default true. Advanced.
	// +optional
	// +kubebuilder:default=true
	Pace *bool `json:"pace,omitempty"`
}
