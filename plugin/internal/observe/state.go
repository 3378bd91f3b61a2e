package observe

import "github.com/pod-pacemaker/pod-pacemaker/plugin/admin"

// newStateMetrics returns metrics of the limiter, the daemon, the places where pods wait, and the node's signals.
func newStateMetrics(s Scraped) *scrape {
	m := &scrape{}
	waiting := m.gauge("waiting", "Pods that wait, without those whose images kubelet pulls.")
	starting := m.gauge("starting", "Pods that hold a slot.")
	slots := m.gauge("slots", "Starts allowed at a time, without lent slots; 0: no limit.")
	lent := m.gauge("slots_lent", "Slots lent beyond the limit, because no start that holds one makes progress.")
	pulling := m.gauge("pulling", "Pods between their sandbox and their first container.")
	longestWait := m.gauge("longest_wait_seconds", "How long the pod that waits longest has waited; 0: no pod waits.")
	maxWait := m.gauge("max_wait_seconds", "How long a pod waits before it may start over the limit, by the config in force.")
	buildInfo := m.gauge("build_info", "Always 1; the labels are the version of the program and the commit of its sources.", "version", "commit")
	settledBusy := m.counter("settled_busy_total", "Starts of pods without a readiness or startup probe that were over after settleTime, while the pod still kept a CPU busy.")
	switchedOff := m.gauge("switched_off", "1 while pod-pacemaker off is in force on the node, so that no pod waits.")
	connected := m.gauge("connected", "1 while the runtime is connected and synchronized. Absent while another daemon has the run folder: scrape that one as well.")
	api := m.gauge("api_connected", "1 while the daemon can read what it needs in the API server: the node's pods and Node, PacemakerConfigs, StartPolicies, and namespaces once a policy has selected by them; 0 while it cannot read one of these: what it has read before stays in force. Absent for a standalone daemon, and while another daemon has the run folder.")
	registrationWaits := m.gauge("registration_waits", "1 while the daemon waits to register with the runtime, by the reason; pods start unpaced. ContainerStops: the runtime is stopping a container. ListingTooLarge: the runtime may end when it lists its pods. RuntimeEnded: it did, when the daemon registered last.", "reason")
	after := m.gauge("start_after", "1 for the state of each entry of startAfter in the config in force. Waiting: pods wait for it. Ready: one of its pods is, or was once since the boot. Absent: none is on the node. TimedOut: none is ready, and pods wait no longer.", "for", "state")
	logDropped := m.counter("log_dropped_total", "Log entries that were dropped, because stderr or journald did not take them in time.")
	gateWaiters := m.gauge("gate_waiters", "Hooks that wait in the gate.")
	roomWaiters := m.gauge("room_waiters", "Pods that wait in the waiting room.")
	roomEmptied := m.counter("room_emptied_total", "How often the folder of the CNI configurations changed. All pods leave the waiting room then.")
	value := m.gauge("signal_value", "Value of a signal, in percent; load in processes. Absent while it cannot be measured.", "signal")
	threshold := m.gauge("signal_threshold", "The value from which a signal holds starts. Absent where no limit is set.", "signal")
	blind := m.gauge("signal_blind", "1 while a signal cannot be measured: its limit holds no start then, and adaptive works without it.", "signal")
	m.collect = func(put sample) {
		now := s.Status()
		put(waiting, float64(len(now.Waiting)))
		put(starting, float64(admin.NewSlots(now).Used))
		put(slots, float64(now.Limit))
		put(lent, float64(now.Lent))
		put(pulling, float64(now.Pulling))
		put(longestWait, float64(now.LongestWait()))
		put(maxWait, float64(now.MaxWaitSeconds))
		put(buildInfo, 1, now.Version, now.Commit)
		put(settledBusy, float64(now.SettledBusy))
		put(switchedOff, oneIf(!now.Config.OffUntil.IsZero()))
		if !s.Standby() {
			put(connected, oneIf(now.Runtime.Synchronized))
			if now.PodWatch != nil {
				put(api, oneIf(now.PodWatch.Healthy && len(now.Unread) == 0))
			}
		}
		for _, reason := range s.Delays {
			put(registrationWaits, oneIf(reason == s.Delay()), reason)
		}
		// Two equal samples would fail the whole scrape. Two selectors may be written differently and have one text.
		seen := map[[2]string]bool{}
		for _, a := range now.StartAfter {
			if labels := [...]string{a.For, a.State}; !seen[labels] {
				seen[labels] = true
				put(after, 1, labels[:]...)
			}
		}
		dropped := uint64(0)
		if s.LogDropped != nil {
			dropped = s.LogDropped()
		}
		put(logDropped, float64(dropped))
		put(gateWaiters, float64(now.Gate.Waiters))
		put(roomWaiters, float64(now.Room.Waiters))
		put(roomEmptied, float64(now.Room.Emptied))
		for _, signal := range now.Signals {
			if signal.Threshold > 0 {
				put(threshold, signal.Threshold, signal.Name)
			}
			put(blind, oneIf(signal.Blind != ""), signal.Name)
			if signal.Value != nil {
				put(value, *signal.Value, signal.Name)
			}
		}
	}
	return m
}
