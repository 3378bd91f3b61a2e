package v1alpha1

import (
	"cmp"
	"time"
)

// PolicyLimits are the limits for the pods of a group.
//
// +kubebuilder:validation:MinProperties=1
type PolicyLimits struct {
	// starting limits the pods of a group that are starting: they were admitted and are not
	// ready yet.
	// +optional
	// +kubebuilder:example={pods:2}
	Starting *PodBound `json:"starting,omitempty"`

	// running limits the pods of a group that were admitted and have not finished. A pod that
	// would exceed this limit waits as long as it must: maxWait does not apply to it.
	// +optional
	// +kubebuilder:example={pods:2}
	Running *PodBound `json:"running,omitempty"`

	// pacer lets more pods of a group start as more of them become ready.
	// +optional
	// +kubebuilder:example={linear:{step:2,maxStagger:10}}
	Pacer *Pacer `json:"pacer,omitempty"`
}

// PodBound limits pods by their number and by what they request together.
//
// +kubebuilder:validation:XValidation:rule="has(self.pods) || has(self.requests)",message="must set pods, requests or both",reason=FieldValueRequired
type PodBound struct {
	// pods is how many pods there may be. From 0 to 100000. 0 holds every pod; under starting, until its maxWait.
	// +optional
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100000
	Pods *int32 `json:"pods,omitempty"`

	// requests is how much the pods may request together of each resource, like cpu: 200m,
	// memory: 1Gi or nvidia.com/gpu: 2. A resource that is absent is not limited, and a pod
	// that requests none of a resource is never held for it. From 1 to 16 resources.
	// +optional
	// +kubebuilder:validation:MinProperties=1
	// +kubebuilder:validation:MaxProperties=16
	// +kubebuilder:validation:XValidation:rule="self.all(k, k.size() <= 317 && k.indexOf('/') <= 253 && k.matches('^([a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$') && (k.contains('/') || k.startsWith('hugepages-') || k in ['cpu', 'memory', 'ephemeral-storage']))",message="every key must be cpu, memory, ephemeral-storage, a name like hugepages-2Mi, or one with a domain like nvidia.com/gpu"
	// +kubebuilder:example={cpu:2}
	Requests map[string]Quantity `json:"requests,omitempty"`
}

// Pacer lets more pods of a group start as more pods of the group become ready. Once
// maxStagger pods are ready, it holds no pod.
//
// +kubebuilder:validation:XValidation:rule="has(self.exponential) != has(self.linear)",message="must set one of exponential and linear",reason=FieldValueForbidden
type Pacer struct {
	// exponential lets minInitial pods start while none is ready. Once pods are ready, it lets
	// their number times multiplier be starting.
	// +optional
	Exponential *ExponentialPacer `json:"exponential,omitempty"`

	// linear lets pods start in steps: the next step begins when all pods of the step before
	// are ready.
	// +optional
	Linear *LinearPacer `json:"linear,omitempty"`
}

// ExponentialPacer lets pods start in proportion to the number of ready pods.
type ExponentialPacer struct {
	// minInitial is how many pods may be starting while none is ready. From 1 to 100000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MinInitial int32 `json:"minInitial"`

	// multiplier, times the number of ready pods, is how many pods may be starting. From
	// "0.001" to 1000, like 4 or "1.5".
	// +required
	// +kubebuilder:validation:XIntOrString
	// +kubebuilder:validation:Pattern=`^[0-9]{1,6}(\.[0-9]{1,3})?$`
	// +kubebuilder:validation:XValidation:rule="double(self) > 0.0 && double(self) <= 1000.0",message="must be a number from \"0.001\" to 1000 with at most three decimal places, like 4 or \"1.5\""
	Multiplier Decimal `json:"multiplier"`

	// maxStagger is how many pods must be ready for the pacer to hold no more pods. From 1 to
	// 100000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxStagger int32 `json:"maxStagger"`
}

// LinearPacer lets pods start in steps.
type LinearPacer struct {
	// step is how many pods are in a step. From 1 to 100000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	Step int32 `json:"step"`

	// maxStagger is how many pods must be ready for the pacer to hold no more pods. From 1 to
	// 100000.
	// +required
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100000
	MaxStagger int32 `json:"maxStagger"`
}

// DefaultOpenAfter is how long the API server may be unavailable before a policy of the
// scope Cluster stops holding pods.
const DefaultOpenAfter = 30 * time.Second

// GetOpenAfter returns how long the API server may be unavailable before a policy of the
// scope Cluster stops holding pods.
func (s StartPolicySpec) GetOpenAfter() time.Duration { return s.OpenAfter.Or(DefaultOpenAfter) }

// GetScope returns whether the limits count the pods of each node (Node, the default) or of the cluster (Cluster).
func (s StartPolicySpec) GetScope() PolicyScope {
	return cmp.Or(s.Scope, ScopeNode)
}
