package v1alpha1

// Pressure holds starts while processes stall for want of CPU, memory or I/O.
//
// +kubebuilder:validation:XValidation:rule="has(self.cpu) || has(self.memory) || has(self.io) || has(self.window)",message="must set cpu, memory, io or window"
type Pressure struct {
	// cpu is about processes that stall for want of a CPU.
	// +optional
	CPU *CPUPressure `json:"cpu,omitempty"`

	// memory is about processes that stall for want of memory: those that wait for
	// pages to be read back or freed.
	// +optional
	Memory *StallPressure `json:"memory,omitempty"`

	// io is about processes that stall for want of I/O.
	// +optional
	IO *StallPressure `json:"io,omitempty"`

	// window is the time over which pressure is measured, for adaptive too: a short
	// one follows the node fast, a long one is steady. From 500ms to 1m, default 2s.
	// Advanced.
	// +optional
	// +kubebuilder:validation:XValidation:rule="self.matches('^([0-9]{1,5}(h|m|s|ms)){1,4}$') && duration(self) >= duration('500ms') && duration(self) <= duration('1m')",message="must be a duration from 500ms to 1m in whole h, m, s or ms, like \"2s\""
	Window *Duration `json:"window,omitempty"`
}

// CPUPressure is about processes that stall for want of a CPU.
type CPUPressure struct {
	// some is the share of time, in percent, in which at least one process may
	// stall: from "0.001" to 100.
	// +required
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100.0",message="must be a percentage from \"0.001\" to 100 with at most three decimal places, like 80 or \"62.5\""
	Some *Decimal `json:"some"`

	// minUtilization is how busy the CPUs of the node must be, all together and in
	// percent, for CPU pressure to count: containers that are throttled by their
	// own CPU limit stall too, on nodes with CPU to spare. From 0 to 100, default
	// 70. Advanced.
	// +optional
	// +kubebuilder:default=70
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 0 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) <= 100.0",message="must be a percentage from 0 to 100 with at most three decimal places, like 10 or \"2.5\""
	MinUtilization *Decimal `json:"minUtilization,omitempty"`
}

// StallPressure is about processes that stall for want of memory or I/O.
//
// +kubebuilder:validation:XValidation:rule="has(self.some) || has(self.full)",message="must set some or full"
type StallPressure struct {
	// some is the share of time, in percent, in which at least one process may
	// stall: from "0.001" to 100.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100.0",message="must be a percentage from \"0.001\" to 100 with at most three decimal places, like 80 or \"62.5\""
	Some *Decimal `json:"some,omitempty"`

	// full is the share of time, in percent, in which all processes that have
	// something to do may stall at once: from "0.001" to 100.
	// +optional
	// +kubebuilder:validation:XValidation:rule="type(self) == int ? self >= 1 && self <= 100 : self.matches('^[0-9]{1,6}([.][0-9]{1,3})?$') && double(self) > 0.0 && double(self) <= 100.0",message="must be a percentage from \"0.001\" to 100 with at most three decimal places, like 80 or \"62.5\""
	Full *Decimal `json:"full,omitempty"`
}
