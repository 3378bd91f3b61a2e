package v1alpha1

// Pressure holds starts while processes stall because they lack CPU, memory or I/O.
//
// +kubebuilder:validation:XValidation:rule="has(self.cpu) || has(self.memory) || has(self.io) || has(self.window)",message="must set cpu, memory, io or window",reason=FieldValueRequired
type Pressure struct {
	// cpu holds starts while processes stall because they lack a CPU.
	// +optional
	// +kubebuilder:example={some:60}
	CPU *CPUPressure `json:"cpu,omitempty"`

	// memory holds starts while processes stall because they lack memory: they wait until
	// pages are read back or freed.
	// +optional
	// +kubebuilder:example={some:20}
	Memory *StallPressure `json:"memory,omitempty"`

	// io holds starts while processes stall because they wait for I/O.
	// +optional
	// +kubebuilder:example={some:20}
	IO *StallPressure `json:"io,omitempty"`

	// window is the time over which pressure is measured, also for adaptive. A short window
	// follows the node fast, a long one is steady. From 500ms to 1m, default 2s. Advanced.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('500ms') && duration(self) <= duration('1m')",message="must be a duration from 500ms to 1m in whole h, m, s or ms, like \"2s\""
	Window *Duration `json:"window,omitempty"`
}

// CPUPressure holds starts while processes stall because they lack a CPU.
type CPUPressure struct {
	// some is the share of time, in percent, in which at least one process may stall. From
	// "0.001" to 100.
	// +required
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100.0",message="must be a percentage from \"0.001\" to 100 with at most three decimal places, like 80 or \"62.5\""
	Some *Decimal `json:"some"`

	// minUtilization is the CPU use of the node, in percent of all its CPUs, above which CPU
	// pressure counts. Without it, containers that reach their own CPU limit would hold starts
	// on a node with CPU to spare. From 0 to 100, default 70. Advanced.
	// +optional
	// +kubebuilder:default=70
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) <= 100.0",message="must be a percentage from 0 to 100 with at most three decimal places, like 10 or \"2.5\""
	MinUtilization *Decimal `json:"minUtilization,omitempty"`
}

// StallPressure holds starts while processes stall because they lack memory or I/O.
//
// +kubebuilder:validation:XValidation:rule="has(self.some) || has(self.full)",message="must set some or full",reason=FieldValueRequired
type StallPressure struct {
	// some is the share of time, in percent, in which at least one process may stall. From
	// "0.001" to 100.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100.0",message="must be a percentage from \"0.001\" to 100 with at most three decimal places, like 80 or \"62.5\""
	Some *Decimal `json:"some,omitempty"`

	// full is the share of time, in percent, in which all processes that have work to do may
	// stall at once. From "0.001" to 100.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100.0",message="must be a percentage from \"0.001\" to 100 with at most three decimal places, like 80 or \"62.5\""
	Full *Decimal `json:"full,omitempty"`
}
