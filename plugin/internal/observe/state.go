package observe

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// newStateMetrics returns metrics of the limiter, the daemon and the places where pods wait.
func newStateMetrics(s Scraped) prometheus.Collector {
	m := &scrape{}
	waiting := m.gauge("waiting", "Pods in the queue.")
	starting := m.gauge("starting", "Pods that hold a slot.")
	slots := m.gauge("slots", "Starts allowed at a time, without lent slots; 0: no limit.")
	lent := m.gauge("slots_lent", "Slots lent beyond the limit, because no start that holds one makes progress.")
	pulling := m.gauge("pulling", "Pods between their sandbox and their first container.")
	longestWait := m.gauge("longest_wait_seconds", "How long the pod that waits longest has waited; 0: no pod waits.")
	maxWait := m.gauge("max_wait_seconds", "How long a pod waits at most, by the configuration in force.")
	buildInfo := m.gauge("build_info", "Always 1; the label is the version of the program.", "version")
	connected := m.gauge("connected", "1 while the runtime is connected and synchronized.")
	registrationWaits := m.gauge("registration_waits", "1 while the daemon waits to register with the runtime, because a container of the node is being stopped; pods start unpaced.")
	logDropped := m.counter("log_dropped_total", "Log entries that were dropped, because stderr or journald did not take them in time.")
	gateWaiters := m.gauge("gate_waiters", "Hooks that wait in the gate.")
	roomWaiters := m.gauge("room_waiters", "Pods that wait in the waiting room.")
	roomEmptied := m.counter("room_emptied_total", "How often the folder of the CNI configurations changed. All pods leave the waiting room then.")
	m.collect = func(put sample) {
		now := time.Now()
		snapshot := s.Limiter.Snapshot(now)
		var longest time.Duration
		for _, t := range snapshot.Waiting {
			longest = max(longest, now.Sub(t.Arrived))
		}
		put(waiting, float64(len(snapshot.Waiting)))
		put(starting, float64(admin.SlotsUsed(snapshot.Starting)))
		put(slots, float64(snapshot.Limit))
		put(lent, float64(snapshot.Lent))
		put(pulling, float64(snapshot.Pulling))
		put(longestWait, longest.Seconds())
		put(maxWait, snapshot.Settings.MaxWait.Seconds())
		put(buildInfo, 1, s.Version)
		put(connected, oneIf(s.Connected() == nil))
		put(registrationWaits, oneIf(s.RegistrationWaits()))
		dropped := uint64(0)
		if s.LogDropped != nil {
			dropped = s.LogDropped()
		}
		put(logDropped, float64(dropped))
		put(gateWaiters, float64(s.GateWaiters()))
		room := s.Room()
		put(roomWaiters, float64(room.Waiters))
		put(roomEmptied, float64(room.Emptied))
	}
	return m
}
