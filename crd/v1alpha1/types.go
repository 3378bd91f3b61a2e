package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// PacemakerConfig sets how fast pods start on the nodes that it selects. If several select
// a node, the one with the highest priority is in force; among equal priorities, the one
// whose name sorts first. If several daemons run on a node, each chooses among the configs
// of its own instance.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=pmc
// +kubebuilder:printcolumn:name="Mode",type=string,JSONPath=`.spec.mode`
// +kubebuilder:printcolumn:name="Concurrent",type=integer,JSONPath=`.spec.throttleConfig.maxConcurrent.value`
// +kubebuilder:printcolumn:name="Per core",type=string,JSONPath=`.spec.throttleConfig.maxConcurrent.perCore`
// +kubebuilder:printcolumn:name="One start per",type=string,JSONPath=`.spec.throttleConfig.rateLimit.fillFactor`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Accepted",type=string,JSONPath=`.status.conditions[?(@.type=="Accepted")].status`
// +kubebuilder:printcolumn:name="Conflicting",type=string,JSONPath=`.status.conditions[?(@.type=="Conflicting")].status`
// +kubebuilder:printcolumn:name="Adaptive",type=string,JSONPath=`.spec.throttleConfig.adaptive`,priority=1
// +kubebuilder:printcolumn:name="CPU",type=string,JSONPath=`.spec.throttleConfig.cpu.maxLoad`,priority=1
// +kubebuilder:printcolumn:name="CPU pressure",type=string,JSONPath=`.spec.throttleConfig.pressure.cpu.some`,priority=1
// +kubebuilder:printcolumn:name="Priority",type=integer,JSONPath=`.spec.priority`,priority=1
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.spec.instance`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type PacemakerConfig struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is required.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state. An empty spec selects every node and holds no pod.
	// +optional
	// +kubebuilder:default={}
	Spec PacemakerConfigSpec `json:"spec,omitempty"`

	// status says where the config is in force.
	// +optional
	Status PacemakerConfigStatus `json:"status,omitzero"`
}

// PacemakerConfigSpec is the desired state of a PacemakerConfig.
//
// +kubebuilder:validation:XValidation:rule="!has(self.startTimeout) || !has(self.settleTime) || !self.startTimeout.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || !self.settleTime.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') || duration(self.startTimeout) < duration('1s') || duration(self.settleTime) < duration(self.startTimeout)",message="must be shorter than startTimeout",messageExpression="'must be shorter than startTimeout, which is ' + self.startTimeout",fieldPath=".settleTime"
type PacemakerConfigSpec struct {
	// mode is what happens to a start that a limit holds. Enforce: the pod waits. Shadow: the
	// pod starts at once, and the daemon reports how long it would have waited; policies of the
	// scope Cluster count no start then. Disabled: no limit is in force, and waiting pods start at
	// once. Default Enforce.
	// +optional
	// +kubebuilder:default=Enforce
	Mode Mode `json:"mode,omitempty"`

	// instance is the name of the daemon that this config is for, as in the daemon's flag
	// --instance. It is for nodes on which several daemons run: each daemon follows only the
	// configs with its own instance name. Absent: the config is for daemons without an
	// instance name. At most 63 lower case letters, digits and '-'. Advanced.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a daemon's instance: lower case letters, digits and '-', the first and the last a letter or a digit"
	Instance string `json:"instance,omitempty"`

	// nodeSelector lists the labels, with their exact values, that a node must have for this
	// config to apply to it. At most 16. Empty or absent: every node.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="every key must be a label name, like \"node.kubernetes.io/instance-type\": at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit; before them, there may be a DNS name of at most 253 characters and '/'"
	// +kubebuilder:example={pool:"a"}
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// priority decides between configs that select the same node: the highest wins, and among
	// equals the one whose name sorts first. From -1000000 to 1000000, default 0.
	// +optional
	// +kubebuilder:default=0
	// +kubebuilder:validation:Minimum=-1000000
	// +kubebuilder:validation:Maximum=1000000
	Priority int32 `json:"priority,omitempty"`

	// throttleConfig holds the limits. A pod starts when every limit that is set allows it. If
	// no limit is set, no pod waits.
	// +optional
	ThrottleConfig ThrottleConfig `json:"throttleConfig,omitempty"`

	// startTimeout is how long a start may hold its slot. A pod that is not ready by then is
	// stuck: it no longer counts. From 1s to 24h, default 5m.
	// +optional
	// +kubebuilder:default="5m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration from 1s to 24h in whole h, m, s or ms, like \"5m\""
	StartTimeout *Duration `json:"startTimeout,omitempty"`

	// fairness is how waiting pods take turns. Namespace: the next pod is from the namespace
	// with the fewest pods starting, and of these the one with the highest priority. None: the
	// pod with the highest priority is next, whatever its namespace. Default Namespace.
	// Advanced.
	// +optional
	// +kubebuilder:default=Namespace
	Fairness Fairness `json:"fairness,omitempty"`

	// maxWait is how long a pod may wait before it may start over the limit. Pods that have
	// waited that long start over the limit one at a time; while other pods wait, they get
	// every second slot. So the k-th of them starts at most 2*k times startTimeout later, or
	// fillFactor if that is longer: without a token of the rate limit, one of them starts in
	// the time of a token. Above 5m, rollouts and helm may give up pods that still wait. From
	// 1s to 24h, default 4m.
	// +optional
	// +kubebuilder:default="4m"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration from 1s to 24h in whole h, m, s or ms, like \"5m\""
	MaxWait *Duration `json:"maxWait,omitempty"`

	// settleTime is how long a pod without a readiness or startup probe keeps its slot after
	// all its containers are running. From 0s to 1h and shorter than startTimeout, default 5s.
	// Advanced.
	// +optional
	// +kubebuilder:default="5s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) <= duration('1h')",message="must be a duration from 0s to 1h in whole h, m, s or ms, like \"5s\""
	SettleTime *Duration `json:"settleTime,omitempty"`

	// restarts say how the restart of a container that exited is paced.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:example={pace:false}
	Restarts Restarts `json:"restarts,omitzero"`

	// startAfter lists pods of the node that others wait for, like those of the CNI agent: after
	// a boot, a pod that is not exempt starts only once a pod of each entry is ready on its node,
	// or has had its time. maxWait does not apply to this wait. The pods listed here must be
	// exempt: otherwise they wait for themselves. At most 16, and no two name the same pods.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.daemonSet) || self.exists_one(b, has(b.daemonSet) && b.daemonSet == a.daemonSet))",message="must not name a DaemonSet twice"
	// +kubebuilder:validation:XValidation:rule="self.all(a, !has(a.podSelector) || !has(a.__namespace__) || self.exists_one(b, has(b.podSelector) && has(b.__namespace__) && b.podSelector == a.podSelector && b.__namespace__ == a.__namespace__))",message="must not have the same podSelector twice for a namespace"
	StartAfter []StartAfter `json:"startAfter,omitempty"`

	// exemptions say which pods never wait. Static pods never wait, whatever is set here.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:example={namespaces:{"kube-system"}}
	Exemptions Exemptions `json:"exemptions,omitempty"`
}

// Mode is what happens to a start that a limit holds.
//
// +kubebuilder:validation:Enum=Enforce;Shadow;Disabled
type Mode string

// The modes.
const (
	// ModeEnforce makes the pod wait.
	ModeEnforce Mode = "Enforce"
	// ModeShadow starts the pod and reports how long Enforce would have held it.
	ModeShadow Mode = "Shadow"
	// ModeDisabled has no limits. Use it when pacing itself may be the fault.
	ModeDisabled Mode = "Disabled"
)

// Fairness is how waiting pods take turns.
//
// +kubebuilder:validation:Enum=Namespace;None
type Fairness string

// The values of Fairness.
const (
	// FairnessNamespace makes namespaces take turns.
	FairnessNamespace Fairness = "Namespace"
	// FairnessNone starts pods by priority, and then in the order in which they came.
	FairnessNone Fairness = "None"
)

// LabelValue is the value of a label: at most 63 letters, digits, '-', '_' and '.'. It
// begins and ends with a letter or a digit, or is empty.
//
// +kubebuilder:validation:MaxLength=63
// +kubebuilder:validation:XValidation:rule="self.matches('^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$')",message="must be a label value: letters, digits, '-', '_' and '.', the first and the last a letter or a digit"
type LabelValue string

// Exemptions say which pods never wait.
type Exemptions struct {
	// namespaces lists the namespaces whose pods never wait. At most 64. Absent: kube-system.
	// An empty list exempts none.
	// +optional
	// +listType=set
	// +kubebuilder:default={"kube-system"}
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a namespace: lower case letters, digits and '-', the first and the last a letter or a digit; '*' works only in daemonSets and criticalPods"
	Namespaces []string `json:"namespaces,omitzero"`

	// daemonSets lists the namespaces in which the pods of DaemonSets never wait.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:example={namespaces:{"kube-*"}}
	DaemonSets ExemptIn `json:"daemonSets,omitzero"`

	// criticalPods lists the namespaces in which pods of the priority classes
	// system-node-critical and system-cluster-critical never wait.
	// +optional
	// +kubebuilder:default={}
	// +kubebuilder:example={namespaces:{"kube-*"}}
	CriticalPods ExemptIn `json:"criticalPods,omitzero"`

	// allowSkipAnnotation lets a pod exempt itself with the annotation pod-pacemaker.io/skip:
	// "true". Default false.
	// +optional
	// +kubebuilder:default=false
	AllowSkipAnnotation bool `json:"allowSkipAnnotation,omitempty"`
}

// ExemptIn lists the namespaces in which pods of one kind never wait.
type ExemptIn struct {
	// namespaces lists the namespaces. A '*' at the beginning or the end of a name matches any
	// text, and '*' alone matches every namespace. At most 64. Absent: kube-*, *-system and
	// pod-pacemaker. An empty list exempts none.
	// +optional
	// +listType=set
	// +kubebuilder:default={"kube-*","*-system","pod-pacemaker"}
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=63
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^([*]|([*]-?)?[a-z0-9]([-a-z0-9]*[a-z0-9])?(-?[*])?)$')",message="must be the name of a namespace, or \"*\", or a name that begins or ends with '*', like \"kube-*\""
	Namespaces []string `json:"namespaces,omitzero"`
}

// Restarts say how the restart of a container is paced.
type Restarts struct {
	// pace makes a container that exited wait before it starts again, unless another app
	// container of its pod is running. It waits like a start of its own, behind all pods of
	// the same priority that exited less often. With false it starts at once, as without the
	// daemon, and is still counted. Default true. Advanced.
	// +optional
	// +kubebuilder:default=true
	Pace *bool `json:"pace,omitempty"`
}
