package nodesim

// The cost of a start besides the pod's own work, fitted to the recorded herds. Their busy time is 0.24 CPU-seconds
// for each pod and 0.16 of a CPU above what the pods burned.
const (
	// backgroundCores is what kubelet, the runtime and other daemons use all the time.
	backgroundCores = 0.16
	// setupSeconds is the CPU time from a pod's creation to its first container.
	setupSeconds = 0.14
	// launchSeconds is the CPU time from its admission to its process.
	launchSeconds = 0.06
	// firstSeen is when kubelet has the first pod of a herd. The creations are this far apart.
	firstSeen, creationGap = 0.35, 0.02
	// setupDelay and launchDelay are the parts of the setup and the launch that use no CPU.
	setupDelay, launchDelay = 0.15, 0.04
	// A refused pod comes back after this time. Each refusal takes refusedSeconds of CPU time: 110 pods that were refused
	// 547 times in 90 s took 21 % of 2 CPUs.
	comeBackAfter, comeBackSpread, refusedSeconds = 10.0, 6.0, 0.08
	// probeEvery is the period of the readiness probe. toldAfter is the time from its success until the limiter
	// knows.
	probeEvery, toldAfter = 1.0, 0.03
	// The liveness probe begins after a delay and a random part of its period, and
	// kills with the third failure.
	livenessDelay, livenessEvery, livenessFailures = 10.0, 3.0, 3
	// restartDelay is the time that kubelet takes to restart a killed container.
	restartDelay = 10.0
	// A pod in the waiting room asks again after roomRound. Its container comes leaveDelay after it left.
	roomRound, leaveDelay = 1.0, 0.3
	// gateSeconds is how long a pod can wait in the gate.
	gateSeconds = 100
)
