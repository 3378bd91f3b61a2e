// Package throttle decides which pod of a node may start now.
//
// # The life of a start
//
// A pod that is about to start joins with [Limiter.Join] and gets a [Ticket]. The ticket is
// Waiting until the limiter admits it, Starting while it is in flight, and ends once: as
// Started (the pod made it, or is stuck and no longer counts) or as Gone (it was deleted, or
// nothing came back for it). A ticket that is Gone is never admitted.
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
// [Limiter] has the mutex, and says in one place who does what (limiter.go). The parts below
// it know neither it nor what others do with them:
//
//	queue         the Waiting tickets in their order, and the flows
//	groups        the groups of policies and the pods in them, counted anew by each scan
//	slots         the starts under way, how many there may be, and what is lent
//	limits        the other limits of the node, with what starts owe to the signals
//	book          all tickets: each joins, starts and ends there, once
//	scan          the way through the queue, and what holds whom (scan.go, to be read in one)
//	admission     who starts next (decide.go), and what deadlines change (deadlines.go)
//	estimates     how soon starts end and others may begin
//	reservations  who may wait near their turn, and who may pull images
//
// # The queue
//
// The Waiting tickets stand in one slice (queue.go), in the order of
//
//   - priority, the higher first;
//   - repeats: a first start goes before one of a container that exited;
//   - round: of a flow (a namespace) with n starts in flight, the first ticket has the round
//     n, the next n+1, and so on;
//   - arrival.
//
// This is the order in which the tickets are served one by one if the next start is always
// that of the flow with the fewest starts in flight, and among equals the one that came
// first. It is fair queuing between flows as in the API server's Priority and Fairness, with
// starts in flight for the seats of requests. A start that ended Stuck counts against its
// flow for one more StartTimeout: a tenant whose pods never get ready has no more slots than
// one whose pods do. Settings.NoFairness leaves the rounds out.
//
// # A decision
//
// A decision is one scan of that slice (candidates):
//
//   - A ticket without a waiter that is expected within seconds: what it asks for is
//     reserved of the bounds of Running of its groups. A pod is expected for 20 seconds after
//     a refusal (kubelet is back in 15) and for 10 after a reservation; then nothing is kept
//     for it. One that is not expected is passed: a refused pod never blocks those behind it.
//   - A ticket that a bound of a group holds: nobody behind it gets any of what it waits for,
//     nor, in that group, what else it asks for. So a stream of small pods does not starve a
//     large one. A pod that does not ask for it passes.
//   - Else it is a candidate. Of those of the first priority and repeats that have one, the
//     next is that of the flow with the fewest starts in flight, then that which came first.
//
// Then the limits of the node are asked, and all are taken, or none; a refusal leaves every
// counter as it was. They hold all alike, so nobody behind is looked at where they refuse.
//
// What a ticket waits for, how many go before it, how many could start, and who comes near its
// turn is found by the same scan (each in scan.go), in which each ticket that nothing
// holds counts as started.
//
// # Groups
//
// A pod may be in groups of policies ([PodGroups]); each policy bounds the pods of each of
// its groups ([GroupLimits]). A pod counts among those that start from its admission until
// its slot ends, and among those that run until [Limiter.Finished]. One that is exempt, was
// adopted, or bypasses a policy counts, and is not held.
//
// Whatever it bounds, a bound has a reason, a resource or pods, how much is used of it, and
// how much it allows (group.go). What a pod asks for is a list of amounts of bounds, those of
// Running first; the first that has no room is what holds it (scan.go). After anything of a
// pod has changed, the next scan counts all pods anew (count): no counter has to be
// kept right.
//
// A pod that alone exceeds a bound of Running is Unadmittable, and keeps nobody from anything.
// A bound of Running may hold a pod for hours: no deadline and no loan passes it, and the pod
// gets no reservation. The pacers are those of straggler (github.com/technicianted/straggler,
// pkg/pacer), asked for one pod at a time. [Limiter.SetClaims] bounds the starts of a group
// by what a party outside gave this node of a bound on all nodes.
//
// # Limits of the node
//
// They are the number of starts at a time, a token bucket, and bounds on signals
// ([Limiter.Observe]). A signal does not show at once what a start costs, so each start owes
// an increment: until the time over which the signal was measured began after the start; to
// the load average, which follows with a time constant of a minute, it owes what that does
// not show yet, exp(-t/1m) of it. A start that is exempt and got no slot owes, too. CPU
// pressure counts only where the CPU is used. A signal that is blind, was never measured, or
// has not been for half a minute opens its limit.
//
// The adaptive limit (package adaptive) is told neither of starts that are exempt, which are
// mostly light, nor that one which ended Stuck made it: it would take both for proof that the
// node bears many more.
//
// # Deadlines
//
// A pod is overdue when it has waited for MaxWait. What it asks for itself (Request.MaxWait)
// counts as 30 seconds at least. Of those with a waiter, the first is that of the highest
// priority, then of the flow with the fewest starts in flight, then the one that came first;
// but every second one is that whose MaxWait was over first. While pods wait that are not
// overdue, slots alternate: one for the order of the queue, one for a deadline. An overdue
// pod starts over the limit, if no other start is above it for a deadline, and if the next
// slot is not that of the queue. (Where something else than the number of starts holds the
// queue, the slot is not kept for it.) So deadlines take at most every second slot, and never
// put more than one start above the limit.
//
// A process that waits can wait for a time only ([Ticket.DeadlineReached]); it is admitted
// over the limit by the same rules.
//
// MaxWait bounds the wait of every pod that has a waiter and that no bound of Running holds:
// one before which k others were overdue starts at most 2(k+1) StartTimeouts after its
// MaxWait. For all starts that are under way when one starts for its deadline have ended one
// StartTimeout later: none is above the limit then, and the queue has had its slot, so the
// next starts for its deadline. Every second of these is the one overdue first, and nobody
// comes to be overdue before it any more. (TestMaxWaitBoundsTheWaitOfEveryPod: with tenants
// who fill the node with starts that hang, at most 1.7(k+1).) No bound can do without k: if
// all starts hang, c slots and one above them start c+1 pods in a StartTimeout, so the last
// of n that are overdue at once waits for n/(c+1) of them.
//
// # Loans
//
// A start may wait for one behind it in the queue: a database that its clients need before
// they are ready. When every slot is held by a start without progress ([Limiter.SetStalled])
// for NoProgressAfter, a pod waits, and no other limit refuses, a slot is lent (SlotLent).
// Nobody knows which pod will help, and one at a time would take n times NoProgressAfter with
// n clients in front: a loan whose takers stall as well has helped nothing, so the next is
// twice as large, NoProgressAfter later, and the jam dissolves after log2(n) loans. An end,
// or progress, takes back what is lent and unused. When the starts are within the limit
// again, or three times NoProgressAfter have passed since a loan, the next is one slot. A
// group whose starts (for a pacer: whose pods that are not ready) all make no progress is lent
// starts beyond its bounds of Starting and its pacer in the same way; not beyond Running or
// claims.
//
// # Estimates
//
// The rate of ends is the sum over the slots of 1/max(median, age): the median duration of the
// last 16 starts that made it, Stuck ones left out, and the age of the start that holds the
// slot. One start of sixteen that hangs takes a sixteenth from it. The expected wait of a
// ticket is the number of tickets up to it divided by that rate, or by that of a slower limit.
//
// The room is how many may wait near their turn, for a time T: with f free slots, f + T*rate/2,
// a margin of two for an estimate that is wrong. The longer of the medians of the last 16 and
// the last 2 counts, as starts that become slower show in the latter first. Where more than 25
// seconds of work are left, being there in time matters less than a slowdown: the room is at
// most f + T * (the sum of 1/max(12*median, 2*age)), so that a pod near its turn gets it even
// if starts become ten times slower at this moment, and at least one for each slot. As long as
// nothing was observed it is 2c+1 for c slots, and at most what the ages allow. The rate limit
// and limits on signals bound it by what they admit in T/2; a jam has room for what loans will
// allow within half a minute. A reservation is a scan of those that are expected, in which the
// bounds on the starts of a group allow what they will have let start by the same estimate: a
// pod gets it if none of its groups holds it there, and fewer than the room come before it. Its
// own groups have room for one in any case, and where they have no claims, for any number: how
// many come, nobody knows.
//
// A free place to pull goes to the first that is back: kubelet comes back in 10 to 15 seconds,
// and with places kept for the first in line 60 pods that pull for 10 seconds took, simulated,
// 30 to 45 % longer. But a place is kept for a pod of a higher priority that is expected.
//
// # Time and concurrency
//
// Every decision takes the time as a parameter; the package reads no clock and starts no
// goroutine. No method blocks. All exported methods are safe for concurrent use. A caller
// advances time with [Limiter.Advance], which says when it wants to be called next, and is
// told of what happened through [Limiter.Changed] and [Limiter.Drain]. Times must have a
// monotonic reading, or come from a clock that is not set; one that is earlier than one given
// before counts as that.
//
// # What it costs
//
// A decision takes O(n) in the number waiting, and allocates nothing; a new ticket allocates
// 1.4 kB. Microseconds of CPU per call (cpu-ns/op of GOMAXPROCS=1 go test -run - -bench
// Decision, on a node that was busy with other work), with so many waiting, half of them with
// a waiter:
//
//	                                    no groups           20 groups that hold
//	                                    10    250    5,000    10    250    5,000
//	one scan, all ordered anew         0.2    8.0      240   0.3    6.8      220
//	the same, all groups counted anew  0.4    8.5      250   0.4   14        320
//	TryStart, refused                  0.7    6.4      140   1.0    6.3      240
//	Reserve                            0.7    6.3      150   0.6    9.4      130
//	End, the next admitted, Join       5.5   34        730   5.3   41        630
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
// token bucket is that of golang.org/x/time/rate.
package throttle
