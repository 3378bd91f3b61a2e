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
//	            deleted, sandbox gone, abandoned
//
// A pod is asked about twice. Before its images are pulled it gets a reservation or not
// ([Ticket.Reserve]): that bounds how many pods wait near their turn and how many pull
// images, and takes no slot. When a process is about to start it takes a slot
// ([Ticket.TryStart], or by waiting between [Ticket.Wait] and [Ticket.StopWaiting]).
//
// # The parts
//
// [Limiter] has the mutex, and says in one place who does what (limiter.go). The parts know
// no Limiter:
//
//	queue      the Waiting tickets in their order, the flows, and the way through them: what
//	           holds whom (scan.go, to be read in one)
//	groups     the pods, and the groups of policies, counted anew when a pod has changed
//	slots      the starts under way, how many there may be, and what is lent
//	limits     the other limits of the node, with what starts owe to the signals
//	book       each ticket joins, starts and ends there, once
//	admission  who starts next, and when that is to be asked again (decide.go); who may wait
//	           near their turn (reserve.go), by how soon others may begin (estimate.go)
//
// # The queue
//
// The Waiting tickets stand in one slice (queue.go), in the order of
//
//   - priority, the higher first;
//   - repeats: a first start goes before one of a container that exited;
//   - round: of a flow (a namespace) with n starts in flight, the first ticket has the round
//     n, the next n+1, and so on, those of higher priorities too;
//   - arrival.
//
// This is fair queuing between flows, with starts in flight for the seats of requests of the
// API server's Priority and Fairness: the next start is that of the flow with the fewest in
// flight. One that ended Stuck counts against its flow for one more StartTimeout: a tenant
// whose pods never get ready has no more slots than one whose pods do.
//
// # A decision
//
// A decision is one scan of that slice (candidates):
//
//   - A ticket without a waiter that is expected within seconds: what it asks for of the
//     bounds of Running of its groups is reserved. A pod is expected for 20 seconds after a
//     refusal (kubelet is back in 15) and for 10 after a reservation. One that is not is
//     passed: a refused pod never blocks those behind it.
//   - A ticket that a bound of a group holds: nobody behind it gets any of what it waits for,
//     nor, in that group, what else it asks for. So a stream of small pods does not starve a
//     large one. A pod that does not ask for it passes.
//   - Else it is a candidate. Of those of the first priority and repeats that have one, the
//     next is that of the flow with the fewest starts in flight, then that which came first.
//
// Then the limits of the node are asked, and all are taken, or none. What a ticket waits for,
// how many go before it and how many could start is told by a scan in which each ticket that
// nothing holds counts as started.
//
// # Groups
//
// Each policy bounds the pods of each of its groups ([GroupLimits]). A pod counts among those
// that start from its admission until its slot ends, and among those that run until
// [Limiter.Finished]. One that is exempt, was adopted, or bypasses a policy counts, and is not
// held. What a pod asks for is a list of amounts of bounds, those of Running first; the first
// that has no room is what holds it.
//
// A pod that alone exceeds a bound of Running is Unadmittable, and keeps nobody from anything.
// A bound of Running may hold a pod for hours: no deadline and no loan passes it, and the pod
// gets no reservation. [Limiter.SetClaims] bounds the starts of a group by what a party
// outside gave this node of a bound on all nodes.
//
// # Limits of the node
//
// They are the number of starts at a time, a token bucket, and bounds on signals
// ([Limiter.Observe]). A signal does not show at once what a start costs, so each start owes
// an increment: until the time over which the signal was measured began after the start; to
// the load average, which follows with a time constant of a minute, exp(-t/1m) of it. A signal
// that is blind, was never measured, or has not been for half a minute opens its limit.
//
// The adaptive limit (package adaptive) is told neither of starts that are exempt, which are
// mostly light, nor that one which ended Stuck made it: it would take both for proof that the
// node bears many more.
//
// # Deadlines
//
// A pod is overdue when it has waited for MaxWait; what it asks for itself counts as 30
// seconds at least. Of those overdue, the first is that of the highest priority, then as in
// the queue; but every second one is that whose MaxWait was over first. While pods wait that
// are not overdue, slots alternate: one for the order of the queue, one for a deadline. An
// overdue pod starts over the limit, if no other start is above it for a deadline, and if the
// next slot is not that of the queue. (Where something else than the number of starts holds
// the queue, the slot is not kept for it.) So deadlines take at most every second slot, and
// never put more than one start above the limit. A process that can wait no longer
// ([Ticket.DeadlineReached]) is admitted over the limit by the same rules.
//
// MaxWait bounds the wait of every pod that has a waiter and that no bound of Running holds:
// one before which k others were overdue starts at most 2(k+1) StartTimeouts after its
// MaxWait. For all starts that are under way when one starts for its deadline have ended one
// StartTimeout later: none is above the limit then, and the queue has had its slot, so the
// next starts for its deadline. Every second of these is the one overdue first, and nobody
// comes to be overdue before it any more. (TestMaxWaitBoundsTheWaitOfEveryPod: with tenants
// who fill the node with starts that hang, at most 1.7(k+1).) No bound can do without k: if
// all starts hang, c slots and one above them start c+1 pods in a StartTimeout.
//
// # Loans
//
// A start may wait for one behind it in the queue: a database that its clients need before
// they are ready. When every slot is held by a start without progress ([Limiter.SetStalled])
// for NoProgressAfter, a pod waits, and no other limit refuses, a slot is lent (SlotLent). A
// loan whose takers stall as well has helped nothing, so the next is twice as large,
// NoProgressAfter later: a jam of n clients dissolves after log2(n) loans. An end, or
// progress, takes back what is lent and unused. When the starts are within the limit again, or
// three times NoProgressAfter have passed since a loan, the next is one slot. In the same way
// starts are lent beyond a bound of Starting or a pacer when no pod that counts against it
// makes progress: of a resource, each as much as the pod asks for that was held when the loan
// was due. Nothing is lent beyond Running or claims.
//
// # Estimates
//
// The rate of ends is the sum over the slots of 1/max(median, age): the median duration of the
// last 16 starts that made it, and the age of the start that holds the slot. The expected wait
// of a ticket is the number of tickets up to it divided by that rate, or by that of a slower
// limit.
//
// The room is how many may wait near their turn, for a time T: with f free slots, f + T*rate/2,
// a margin of two for an estimate that is wrong. The longer of the medians of the last 16 and
// the last 2 counts, as starts that become slower show in the latter first. Where more than 25
// seconds of work are left, the room is at most f + T * (the sum of 1/max(12*median, 2*age)),
// so that a pod near its turn gets it even if starts become ten times slower at this moment,
// and at least one for each slot. As long as nothing was observed it is 2c+1 for c slots, and
// at most what the ages allow. The rate limit and limits on signals bound it by what they
// admit in T/2; a jam has room for what loans will allow within half a minute.
//
// A reservation is a scan of those that are expected, in which the bounds on the starts of a
// group allow what they will have let start by the same estimate: a pod gets it if none of its
// groups holds it there, fewer than the room come before it, and fewer than twice the room are
// near. Its own groups have room for one in any case, and where they have no claims, for any
// number. A free place to pull goes to the first that is back (kept for the first in line, 60
// pods that pull for 10 seconds took 30 to 45 % longer), but one of a higher priority that is
// expected has it kept.
//
// Left out one by one, the parts of the rule cost (make sim): the median of the last 2, 24
// deadlines instead of 10 in the gate, and now and then two at once; twice the room, 57 instead
// of 10; the 25 seconds, a herd of 16 takes 1.18 instead of 1.06 times its work; the room for
// loans, a jam of 40 clients lasts 92 instead of 65 seconds.
//
// # Time and concurrency
//
// The package reads no clock and starts no goroutine. No method blocks. All exported methods
// are safe for concurrent use. A caller advances time with [Limiter.Advance], which says when
// it wants to be called next, and is told of what happened through [Limiter.Changed] and
// [Limiter.Drain]. Times must have a monotonic reading, or come from a clock that is not set;
// one that is earlier than one given before counts as that.
//
// # What it costs
//
// A decision takes O(n log n) in the number waiting, and allocates nothing; a new ticket allocates
// 1.4 kB. Microseconds of CPU per call (cpu-ns/op of GOMAXPROCS=1 go test -run - -bench
// Decision, on a node that was busy with other work), with so many waiting, half of them with
// a waiter:
//
//	                                    no groups           20 groups that hold
//	                                    10    250    5,000    10    250    5,000
//	one scan, all ordered anew         0.2   10       410   0.2    9        350
//	the same, all groups counted anew  0.3   13       420   0.3   13        430
//	TryStart, refused                  0.3    4.7     120   0.4    4.8      110
//	Reserve                            0.3    4.8      90   0.3    3.5      100
//	End, the next admitted, Join       3.6   35     1,400   3.2   40      1,100
//
// # What it reaches
//
// Simulated with kubelet's times (make sim): of 240 seeded herds of 60 to 320 pods that become
// ten times slower midway, 9 of 24,800 starts reach their deadline in the gate, no two at once;
// with an adaptive limit, in 60 herds, 8 of 14,200. Of herds of mixed costs with a start that
// hangs and a second tenant, 10 of 3,640 do, and the second tenant's ten pods wait for 18 s
// (median) behind eighty. With two slots, herds that stay as they are take 2 to 11 % longer
// than their work. The expected wait (TestTheExpectedWaitIsNearWhatThenHappens) is wrong by
// 17 % (median), and for nine in ten by less than 58 %.
//
// # Sources
//
// Fair queuing: Nagle, RFC 970 (1985); Demers, Keshav and Shenker, "Analysis and Simulation of
// a Fair Queueing Algorithm" (1989); k8s.io/apiserver, pkg/util/flowcontrol/fairqueuing. The
// pacers are those of straggler (github.com/technicianted/straggler, pkg/pacer), the token
// bucket is that of golang.org/x/time/rate.
package throttle
