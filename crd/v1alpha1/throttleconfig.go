package v1alpha1

// ThrottleConfig holds the limits of a node.
type ThrottleConfig struct {
	// maxConcurrent limits how many pods may be starting at a time.
	// +optional
	// +kubebuilder:example={value:2}
	MaxConcurrent *MaxConcurrent `json:"maxConcurrent,omitempty"`

	// adaptive finds out how many pods may be starting at a time, from the CPU use and the CPU
	// and I/O pressure of the node. {} is enough to use it. If maxConcurrent is set too, the
	// smaller of both numbers applies.
	// +optional
	// +kubebuilder:example={max:8}
	Adaptive *Adaptive `json:"adaptive,omitempty"`

	// rateLimit limits how many pods may begin to start in a period of time.
	// +optional
	// +kubebuilder:example={fillFactor:"1s"}
	RateLimit *RateLimit `json:"rateLimit,omitempty"`

	// cpu holds starts while the CPUs that pods can use, taken together, are busy for maxLoad
	// percent of the time or more.
	// +optional
	// +kubebuilder:example={maxLoad:80}
	CPU *LoadLimit `json:"cpu,omitempty"`

	// io holds starts while the CPUs of the node, taken together, are idle for maxLoad percent
	// of the time or more because they wait for I/O.
	// +optional
	// +kubebuilder:example={maxLoad:80}
	IO *LoadLimit `json:"io,omitempty"`

	// loadAvg holds starts while the load average of the node is high.
	// +optional
	// +kubebuilder:example={maxLoad:8}
	LoadAvg *LoadAvgLimit `json:"loadAvg,omitempty"`

	// pressure holds starts while processes stall because they lack CPU, memory or I/O, as the
	// kernel reports in /proc/pressure.
	// +optional
	// +kubebuilder:example={cpu:{some:60}}
	Pressure *Pressure `json:"pressure,omitempty"`

	// maxPulling limits how many pods may be between the creation of their sandbox and of
	// their first container, which is when their images are pulled. From 1 to 1000. Absent: no
	// limit.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	MaxPulling *int32 `json:"maxPulling,omitempty"`

	// noProgressAfter is how long all pods that are starting may make no progress before one
	// waiting pod starts in addition, because they may depend on it. From 1s to 1h, or 0s for
	// never; default 10s. Advanced.
	// +optional
	// +kubebuilder:default="10s"
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && (duration(self) == duration('0s') || duration(self) >= duration('1s') && duration(self) <= duration('1h'))",message="must be 0s, or a duration from 1s to 1h in whole h, m, s or ms, like \"10s\""
	NoProgressAfter *Duration `json:"noProgressAfter,omitempty"`
}

// MaxConcurrent limits how many pods may be starting at a time.
//
// +kubebuilder:validation:XValidation:rule="has(self.value) || has(self.perCore)",message="must set value or perCore",reason=FieldValueRequired
type MaxConcurrent struct {
	// value is how many pods may be starting at a time. From 1 to 1000. If perCore is set too,
	// value applies.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Value *int32 `json:"value,omitempty"`

	// perCore is how many pods may be starting at a time per CPU core that pods can use: a whole
	// number like 2, or a decimal in quotes with at most three decimal places like "0.5". From
	// "0.001" to 100. The product is rounded up.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100.0",message="must be a number from \"0.001\" to 100 with at most three decimal places, like \"0.5\""
	PerCore *Decimal `json:"perCore,omitempty"`

	// cost is what each pod that is starting counts against value or perCore. Pods: one.
	// Cores: the CPU cores that the pod is expected to keep busy, as learned from earlier
	// starts of its kind, or one if there were none. A pod that alone exceeds the number
	// starts when no other pod is starting. Default Pods.
	// +optional
	// +kubebuilder:default=Pods
	Cost Cost `json:"cost,omitempty"`
}

// Cost is what a starting pod counts against a limit.
//
// +kubebuilder:validation:Enum=Pods;Cores
type Cost string

// The costs.
const (
	// CostPods counts each pod as one.
	CostPods Cost = "Pods"
	// CostCores counts the CPU cores that a pod is expected to keep busy.
	CostCores Cost = "Cores"
)

// Adaptive finds out how many pods may be starting at a time.
//
// +kubebuilder:validation:XValidation:rule="!has(self.min) || !has(self.max) || self.min <= self.max",message="must not be less than min",fieldPath=".max"
type Adaptive struct {
	// targetPressure is the share of time, in percent, in which some process may stall because
	// it lacks a CPU while pods start. A higher value starts more pods at a time. From
	// "0.001" to 100. Absent: what suits most nodes. Advanced.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100.0",message="must be a percentage from \"0.001\" to 100 with at most three decimal places, like 80 or \"62.5\""
	TargetPressure *Decimal `json:"targetPressure,omitempty"`

	// min is how many pods may be starting at a time even if the pressure is high. From 1 to
	// 1000, default 1. Advanced.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Min *int32 `json:"min,omitempty"`

	// max is how many pods may be starting at a time even if the pressure is low. From 1 to
	// 1000 and not less than min. Absent: as many as the node can handle.
	// +optional
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Max *int32 `json:"max,omitempty"`
}

// RateLimit limits how many pods may begin to start in a period of time.
type RateLimit struct {
	// fillFactor is the time after which one more start is allowed: "1s" allows one start per
	// second. From 1ms to 1h.
	// +required
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('1ms') && duration(self) <= duration('1h')",message="must be a duration from 1ms to 1h in whole h, m, s or ms, like \"1s\""
	FillFactor Duration `json:"fillFactor"`

	// burst is how many unused starts can be saved up, and so how many pods may begin to start
	// at once after a quiet time. From 1 to 1000, default 1.
	// +optional
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000
	Burst *int32 `json:"burst,omitempty"`
}

// LoadLimit holds starts while a measured share of CPU time is high.
type LoadLimit struct {
	// maxLoad is the share of time, in percent, from which on no pod starts. From "0.001" to
	// 100, like 80 or "62.5".
	// +required
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100.0",message="must be a percentage from \"0.001\" to 100 with at most three decimal places, like 80 or \"62.5\""
	MaxLoad *Decimal `json:"maxLoad"`

	// incrementBy is added to the measured share for each start, until the share is measured
	// over a time that began after the start: before that, the start does not fully show in it.
	// From 0 to 100, default 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) <= 100.0",message="must be a percentage from 0 to 100 with at most three decimal places, like 10 or \"2.5\""
	IncrementBy *Decimal `json:"incrementBy,omitempty"`
}

// LoadAvgLimit holds starts while the load average of the node is high.
type LoadAvgLimit struct {
	// maxLoad is the load average of the last minute from which on no pod starts. The load
	// average is the number of processes that run, wait for a CPU, or wait for a disk. From
	// "0.001" to 100000, like 8 or "1.5".
	// +required
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100000 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100000.0",message="must be a number from \"0.001\" to 100000 with at most three decimal places, like 8 or \"1.5\""
	MaxLoad *Decimal `json:"maxLoad"`

	// perCore makes maxLoad and incrementBy numbers per CPU core of the node. Default false:
	// they are for the whole node.
	// +optional
	// +kubebuilder:default=false
	PerCore bool `json:"perCore,omitempty"`

	// incrementBy is added to the measured load average for each start. It fades within some
	// minutes, as the load average comes to show the start. From 0 to 100000, default 0.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100000 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) <= 100000.0",message="must be a number from 0 to 100000 with at most three decimal places, like 1 or \"0.5\""
	IncrementBy *Decimal `json:"incrementBy,omitempty"`
}
