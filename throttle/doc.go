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
// decide.go says what a deadline does, loans.go when a slot is lent, and estimate.go what is expected of starts and when a
// place in the gate is a promise.
//
// # The queue
//
// The Waiting tickets are in one slice (queue.go), ordered by
//
//   - round: in a flow (a namespace) with n starts under way, the first ticket has the
//     round n, the next n+1, and so on;
//   - priority, the higher first;
//   - repeats: a first start goes before the start of a container that exited;
//   - arrival.
//
// This is fair queuing between flows, as in the API server's Priority and Fairness, with
// starts under way in place of seats of requests: the next start is that of the flow with the
// fewest under way. A start that ended Stuck counts against its flow for one more
// StartTimeout, so a tenant whose pods never become ready gets no more slots than others. Every
// tenant may use high priorities, so they order the pods of a flow, and flows with equally many
// starts under way, but give a flow no more slots.
//
// # A decision
//
// A decision is one scan of that slice (candidates). For each ticket:
//
//   - If no process waits for it, but one should within seconds, the ticket is awaited. The scan
//     sets aside for it what it asks for of the bounds of Running of its groups. A pod is awaited
//     for 20 seconds after a refusal (kubelet retries within 15) or a reservation. After that,
//     the scan passes over it: a refused pod that kubelet has not retried does not block the
//     pods behind it. A ticket that yields, and is not overdue, counts as awaited.
//   - If a bound of a group holds it, the tickets behind it get nothing of that bound and, in
//     the same group, nothing else that it asks for. So a stream of small pods does not starve
//     a large one. Pods that do not ask for that bound pass.
//   - Else it is a candidate. The next ticket is the candidate of the flow with the fewest
//     starts under way, then of the highest priority, then with the fewest repeats, then the
//     first to arrive. Those that the forecast lets pass go before all others: they delay none
//     of them (package adaptive).
//
// Then the limits of the node are asked. Either all of them allow the start and are taken, or
// none is. What a ticket waits for, how many tickets go before it and how many could start is
// the result of another scan, which counts each ticket that nothing holds as started.
//
// # Groups
//
// Each policy limits the pods of each of its groups ([GroupLimits]). A pod counts as starting
// from its admission until its slot ends, and as running until [Limiter.Finished]. A pod that
// is exempt, was adopted or bypasses a policy counts, but is not held. A pod asks for amounts
// of bounds, those of Running first. The first bound that is full holds it.
//
// A pod that alone exceeds a bound of Running is Unadmittable, and keeps nothing from others.
// A bound of Running may hold a pod for hours. So no deadline and no loan exceeds it, and the
// pod gets no reservation. [Limiter.SetClaims] limits the starts of a group to the part that
// this node holds of a bound on all nodes.
//
// # Limits of the node
//
// The limits of the node are the number of starts at a time, a token bucket, and limits on
// signals ([Limiter.Observe]). A signal does not show the load of a start at once, so each
// start owes an increment, until the signal is measured over a time that began after the
// start. The load average follows with a time constant of a minute: at an age t, a start owes
// exp(-t/1m) of the increment. The limit on a signal is open while the signal has an error,
// was never measured, or was not measured for half a minute.
//
// The adaptive limit (package adaptive) does not get two things, because it would take both
// for proof that the node bears many more starts: exempt starts, which are mostly light, and
// starts that ended Stuck, as starts that succeeded.
//
// A [Pause] closes them all for a time that its caller limits. It is no limit on how many start, so no deadline and no loan
// exceeds it.
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
// comes, a new measurement, or a pod that may be refused adds a plan. It takes 0.5 ms with 110 starts under way and 500
// pods that wait (BenchmarkAllow).
//
// # Sources
//
// Fair queuing: Nagle, RFC 970 (1985); Demers, Keshav and Shenker, "Analysis and Simulation of
// a Fair Queueing Algorithm" (1989); k8s.io/apiserver, pkg/util/flowcontrol/fairqueuing. The
// pacers are those of straggler (github.com/technicianted/straggler, pkg/pacer), the token
// bucket is that of golang.org/x/time/rate.
package throttle
