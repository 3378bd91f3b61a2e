package v1alpha1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// StartPolicy limits how many pods of a group may start or run at a time. A pod starts
// when every StartPolicy that selects it allows it, and the PacemakerConfig of its node
// too. A pod that no policy selects is never held by one.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:scope=Cluster,shortName=spol
// +kubebuilder:printcolumn:name="Scope",type=string,JSONPath=`.spec.scope`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Nodes",type=integer,JSONPath=`.status.nodes`
// +kubebuilder:printcolumn:name="Waiting",type=integer,JSONPath=`.status.waiting`
// +kubebuilder:printcolumn:name="Starting",type=integer,JSONPath=`.status.used.starting.pods`
// +kubebuilder:printcolumn:name="Running",type=integer,JSONPath=`.status.used.running.pods`
// +kubebuilder:printcolumn:name="Throttled",type=string,JSONPath=`.status.throttled`
// +kubebuilder:printcolumn:name="Group by",type=string,JSONPath=`.spec.groupBy`,priority=1
// +kubebuilder:printcolumn:name="Limits",type=string,JSONPath=`.status.calculatedLimits`,priority=1
// +kubebuilder:printcolumn:name="Status",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].message`,priority=1
// +kubebuilder:printcolumn:name="Instance",type=string,JSONPath=`.spec.instance`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type StartPolicy struct {
	metav1.TypeMeta `json:",inline"`
	// metadata is the standard object metadata. The name is required.
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// spec is the desired state.
	// +required
	Spec StartPolicySpec `json:"spec"`

	// status sums up the reports of the nodes on which this policy is in force.
	// +optional
	Status StartPolicyStatus `json:"status,omitzero"`
}

// StartPolicySpec is the desired state of a StartPolicy.
//
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.scope != 'Cluster' || has(self.limits.starting) && has(self.limits.starting.pods) && self.limits.starting.pods >= 1 && self.limits.starting.pods <= 1000 && !has(self.limits.starting.requests) && !has(self.limits.running) && !has(self.limits.pacer)",message="must be starting.pods from 1 to 1000 and nothing else, for the scope is Cluster",reason=FieldValueForbidden,fieldPath=".limits"
// +kubebuilder:validation:XValidation:rule="!has(self.scope) || self.scope != 'Cluster' || !has(self.temporaryOverrides) || self.temporaryOverrides.all(o, has(o.limits.starting) && has(o.limits.starting.pods) && o.limits.starting.pods >= 1 && o.limits.starting.pods <= 1000 && !has(o.limits.starting.requests) && !has(o.limits.running) && !has(o.limits.pacer))",message="every limits must be starting.pods from 1 to 1000 and nothing else, for the scope is Cluster",reason=FieldValueForbidden,fieldPath=".temporaryOverrides"
// +kubebuilder:validation:XValidation:rule="!has(self.openAfter) || has(self.scope) && self.scope == 'Cluster'",message="must be absent, for the scope is not Cluster",reason=FieldValueForbidden,fieldPath=".openAfter"
type StartPolicySpec struct {
	// instance is the name of the daemon that this policy is for, as in the daemon's flag
	// --instance. Absent: the policy is for daemons without an instance name. At most 63 lower
	// case letters, digits and '-'. Advanced.
	// +optional
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self == '' || self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="must be the name of a daemon's instance: lower case letters, digits and '-', the first and the last a letter or a digit"
	Instance string `json:"instance,omitempty"`

	// nodeSelector lists the labels, with their exact values, that a node must have for this
	// policy to be in force there. At most 16. Empty or absent: every node.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="every key must be a label name, like \"node.kubernetes.io/instance-type\": at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit; before them, there may be a DNS name of at most 253 characters and '/'"
	// +kubebuilder:example={pool:"a"}
	NodeSelector map[string]LabelValue `json:"nodeSelector,omitempty"`

	// selector selects the pods that the policy applies to.
	// +required
	// +kubebuilder:example={terms:{{podSelector:{}}}}
	Selector PodSelection `json:"selector"`

	// bypassSelector selects, among these pods, those that the policy never holds. They still
	// count against its limits. Absent: none.
	// +optional
	// +kubebuilder:example={matchLabels:{app:"web"}}
	BypassSelector *LabelSelector `json:"bypassSelector,omitempty"`

	// groupBy is a JSONPath that is evaluated on each pod, like .spec.containers[0].image: one
	// path of fields, indexes, [*] and filters like [?(@.name=="app")]. Pods with the same value
	// form a group, and the limits apply to each group separately. A pod for which the path finds
	// nothing, or an empty text, is not held by the policy and does not count. Absent: all pods
	// form one group. At most 256 characters.
	// +optional
	// +kubebuilder:validation:MaxLength=256
	// +kubebuilder:validation:XValidation:rule=`self == '' || self.startsWith('{') == self.endsWith('}') && self.matches(r"""^(?:\{\$?)?\.(?:[-\w/]|\\[.])+(?:\.(?:[-\w/]|\\[.])+|\['(?:[-\w/.]|\\[.])+'\]|\[(?:\*|-?[0-9]{1,5})\]|\[\?\(@(?:\.(?:[-\w/]|\\[.])+|\['(?:[-\w/.]|\\[.])+'\])+ *[!=]= *(?:"[ !#-\[\]-~]*"|'[ -&(-\[\]-~]*'|-?[0-9]+|true|false)\)\])*\}?$""")`,message="must be a JSONPath of fields, indexes, [*] and filters like [?(@.name==\"app\")], like .spec.containers[0].image"
	GroupBy string `json:"groupBy,omitempty"`

	// limits are the limits for the pods of each group.
	// +required
	// +kubebuilder:example={starting:{pods:2}}
	Limits PolicyLimits `json:"limits"`

	// temporaryOverrides replace limits for a period of time. If several are in force at the
	// same time, each limit comes from the first that sets it. A limit that none sets comes
	// from limits. At most 32.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=32
	TemporaryOverrides []TemporaryOverride `json:"temporaryOverrides,omitempty"`

	// maxWait is how long a pod that this policy selects may wait before it may start over the
	// limit, if that is less than the maxWait of the PacemakerConfig. Set it where somebody else
	// gives up a pod that waits too long. A limit of running pods holds the pod even longer.
	// From 1s to 24h. Absent: only the PacemakerConfig counts.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('24h')",message="must be a duration from 1s to 24h in whole h, m, s or ms, like \"5m\""
	MaxWait *Duration `json:"maxWait,omitempty"`

	// scope is what the limits count. Node: the pods of a group on each node separately.
	// Cluster: the pods of a group on all nodes together; then only starting.pods can be
	// limited. Default Node.
	// +optional
	// +kubebuilder:default=Node
	Scope PolicyScope `json:"scope,omitempty"`

	// openAfter is how long the API server may be unavailable before a policy of the scope
	// Cluster stops holding pods. From 1s to 1h, default 30s. Advanced.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1s') && duration(self) <= duration('1h')",message="must be a duration from 1s to 1h in whole h, m, s or ms, like \"30s\""
	OpenAfter *Duration `json:"openAfter,omitempty"`
}

// PolicyScope is what the limits of a policy count.
//
// +kubebuilder:validation:Enum=Node;Cluster
type PolicyScope string

// The scopes.
const (
	// ScopeNode counts the pods of a group on each node separately.
	ScopeNode PolicyScope = "Node"
	// ScopeCluster counts the pods of a group on all nodes together.
	ScopeCluster PolicyScope = "Cluster"
)

// PodSelection selects the pods that a policy applies to.
type PodSelection struct {
	// terms are alternatives: a pod is selected if at least one of them selects it. From 1 to
	// 16.
	// +required
	// +listType=atomic
	// +kubebuilder:validation:XValidation:rule="self.size() > 0",message="must have at least one term, like {podSelector: {}} for every pod",reason=FieldValueRequired
	// +kubebuilder:validation:MaxItems=16
	Terms []PodSelectorTerm `json:"terms"`
}

// PodSelectorTerm selects the pods that both of its selectors select.
//
// +kubebuilder:validation:XValidation:rule="has(self.podSelector) || has(self.namespaceSelector)",message="must have podSelector, namespaceSelector or both",reason=FieldValueRequired
type PodSelectorTerm struct {
	// podSelector selects pods by their labels. {} or absent: every pod.
	// +optional
	// +kubebuilder:example={matchLabels:{app:"web"}}
	PodSelector *LabelSelector `json:"podSelector,omitempty"`

	// namespaceSelector selects pods by the labels of their namespace. {} or absent: every
	// namespace. The label kubernetes.io/metadata.name is the name of the namespace. For any
	// other label, the daemon needs the permission to watch namespaces.
	// +optional
	// +kubebuilder:example={matchLabels:{team:"a"}}
	NamespaceSelector *LabelSelector `json:"namespaceSelector,omitempty"`
}

// LabelSelector selects by labels. All of matchLabels and matchExpressions must match. An
// empty selector matches everything.
type LabelSelector struct {
	// matchLabels lists labels, each with the value that it must have. At most 16.
	// +optional
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$'))",message="every key must be a label name, like \"app.kubernetes.io/name\": at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit; before them, there may be a DNS name of at most 253 characters and '/'"
	// +kubebuilder:example={app:"web"}
	MatchLabels map[string]LabelValue `json:"matchLabels,omitempty"`

	// matchExpressions lists conditions on labels. At most 16.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=16
	MatchExpressions []LabelRequirement `json:"matchExpressions,omitempty"`
}

// LabelRequirement is a condition on one label.
//
// +kubebuilder:validation:XValidation:rule="(self.operator in ['In', 'NotIn']) == (has(self.values) && self.values.size() > 0)",message="must have entries with the operators In and NotIn, and none with Exists and DoesNotExist",fieldPath=".values"
type LabelRequirement struct {
	// key is the name of the label.
	// +required
	// +kubebuilder:validation:MaxLength=317
	// +kubebuilder:validation:XValidation:rule="self.indexOf('/') <= 253 && self.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$')",message="must be a label name, like \"app.kubernetes.io/name\": at most 63 letters, digits, '-', '_' and '.', the first and the last a letter or a digit; before them, there may be a DNS name of at most 253 characters and '/'"
	Key string `json:"key"`

	// operator is In, NotIn, Exists or DoesNotExist. As everywhere in Kubernetes, NotIn also
	// matches where the label is absent.
	// +required
	// +kubebuilder:validation:Enum=In;NotIn;Exists;DoesNotExist
	Operator metav1.LabelSelectorOperator `json:"operator"`

	// values are the values that In and NotIn compare the label with. At most 64.
	// +optional
	// +listType=atomic
	// +kubebuilder:validation:MaxItems=64
	Values []LabelValue `json:"values,omitempty"`
}

// TemporaryOverride replaces limits for a period of time.
//
// +kubebuilder:validation:XValidation:rule="!has(self.begin) || !has(self.end) || !self.begin.matches('^([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.,][0-9]+)?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$') || !self.end.matches('^([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|02-(0[1-9]|1[0-9]|2[0-8]))|([0-9]{2}(0[48]|[2468][048]|[13579][26])|([02468][048]|[13579][26])00)-02-29)T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.,][0-9]+)?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$') || timestamp(self.begin) <= timestamp(self.end)",message="must not be before begin",fieldPath=".end"
type TemporaryOverride struct {
	// begin is the time from which the override is in force, in the format of RFC 3339, like
	// "2026-11-27T00:00:00+01:00". Absent: the override is in force until its end.
	// +optional
	Begin *Moment `json:"begin,omitempty"`

	// end is the last moment at which the override is in force, in the same format as begin.
	// Absent: the override is in force from its begin on.
	// +optional
	End *Moment `json:"end,omitempty"`

	// limits are the limits that the override sets.
	// +required
	// +kubebuilder:example={starting:{pods:2}}
	Limits PolicyLimits `json:"limits"`
}
