package waiting

// RuntimeFaults tells what a container runtime of that name and version does not bear:
// why containers do not wait in the gate there, and why nothing is refused at the
// sandbox. Both are empty where it bears them.
func RuntimeFaults(name, version string) (gate, sandbox string) {
	return runtimeBars(name, version), keepsRefused(name, version)
}
