package plugin

// KubeletTimeoutShare is the share of kubelet's runtimeRequestTimeout for which
// [GateTimeoutOf] lets a container wait in the gate.
const KubeletTimeoutShare = kubeletTimeoutShare
