// Package throttle decides which pod of a node may start now.
//
// # The life of a start
//
// A pod that is about to start joins with [Limiter.Join] and gets a [Ticket].
//
//	         admitted                    ready, settled, stuck ...
//	Waiting ----------> Starting (slot) -------------------------> Started
//	   |                    |
//	   '--------------------'--------------------------------------> Gone
//	            deleted, abandoned; Starting also: sandbox gone, not made
//
// Started means that its slot has ended, not that the pod is up.
//
// A pod asks twice. At its sandbox, before its images are pulled, it asks for a reservation
// ([Ticket.Reserve]). Reservations limit how many pods wait near their turn, in the gate, and
// how many pull images; they take no slot. At its container, when a process is about to start, it asks for a
// slot: at once with [Ticket.TryStart], or by waiting between [Ticket.Wait] and [Ticket.StopWaiting]. If it
// gets none, it asks for a reservation again.
//
// # The parts
//
// [Limiter] has the exported methods (limiter.go), and these parts:
//
//	queue      the Waiting tickets in their order, and the flows; which bound of a group
//	           holds which ticket (scan.go)
//	groups     the pods, and the groups of policies, counted anew after a change of a pod
//	slots      the starts under way, how many there may be, and loans of slots
//	limits     the other limits of the node, with what starts owe to the signals
//	tickets    joins, starts and ends tickets
//	admission  who starts next, and when to decide again (decide.go); who may wait near
//	           their turn (reserve.go), by an estimate of when others start (estimate.go)
//
// Each file says how it works: queue.go the order, scan.go a decision, decide.go what MaxWait does, group.go the limits of
// policies, limits.go the limits of the node, loans.go when a slot is lent, and estimate.go what is expected of starts and
// when a place in the gate is a promise.
//
// # Time and concurrency
//
// The package has no lock, reads no clock and starts no goroutine. The owner of a [Limiter] has a lock, and holds it for each
// call of a method of the Limiter and its tickets. It advances time with [Limiter.Advance], which returns when to call
// it next. When [Limiter.Changed] reports a change, it calls Advance again, and gets the events with [Limiter.Drain].
// Times must have a monotonic reading, or come from a clock that is not set. A time that is earlier than one given before
// counts as that one.
//
// Under the owner's lock, the package calls package adaptive, which uses figures of package costs, and
// golang.org/x/time/rate. They only compute: there is no I/O, no log, no wait and no callback.
// The linter allows no import that could do more. A decision takes O(n log n) in the number n of waiting tickets: 10 µs of
// CPU for 250 of them, and 0.4 ms for 5,000 (BenchmarkDecision). With an adaptive limit, a start that ends, a process that
// comes, a new measurement, or a pod that may be refused adds a plan. It takes 0.2 ms with 110 starts under way and 500
// pods that wait (BenchmarkAllow).
//
// # Sources
//
// Fair queuing: Nagle, RFC 970 (1985); Demers, Keshav and Shenker, "Analysis and Simulation of
// a Fair Queueing Algorithm" (1989); k8s.io/apiserver, pkg/util/flowcontrol/fairqueuing. The
// pacers come from straggler (github.com/technicianted/straggler, pkg/pacer), the token bucket
// from golang.org/x/time/rate.
package throttle
