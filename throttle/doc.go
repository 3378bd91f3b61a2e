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
// ([Ticket.Reserve]). Reservations bound how many pods wait near their turn, in the gate, and
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
// Each policy bounds the pods of each of its groups ([GroupLimits]). A pod counts as starting
// from its admission until its slot ends, and as running until [Limiter.Finished]. A pod that
// is exempt, was adopted or bypasses a policy counts, but is not held. A pod asks for amounts
// of bounds, those of Running first. The first bound that is full holds it.
//
// A pod that alone exceeds a bound of Running is Unadmittable, and keeps nothing from others.
// A bound of Running may hold a pod for hours. So no deadline and no loan exceeds it, and the
// pod gets no reservation. [Limiter.SetClaims] bounds the starts of a group by the part that
// this node holds of a bound on all nodes.
//
// # Limits of the node
//
// The limits of the node are the number of starts at a time, a token bucket, and bounds on
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
// A [Hold] closes them all for a time that its caller bounds. It is no limit on how many start, so no deadline and no loan
// exceeds it.
//
// # Deadlines
//
// A pod is overdue when it has waited for MaxWait, that of its policies if it is less. Its own
// MaxWait counts as at least 30 seconds. Overdue pods go in the same order, but every second one
// is the pod whose MaxWait ended first. While there are pods that are not overdue, slots alternate
// between the queue and the overdue. An overdue pod starts over the limit unless another start
// is over it for a deadline, or the next slot is for the queue. (If the queue is held by
// something other than the number of starts, no slot is kept for it.) So deadlines take at
// most every second slot, and put at most one start over the limit. A start without a token of the
// rate limit is the only one in the time of a token: at most twice as many start as the rate limit
// allows. A process that can wait no
// longer ([Ticket.DeadlineReached]) is refused; its pod keeps its place.
//
// MaxWait bounds the wait of every pod that has a waiter and that no bound of Running holds. A
// pod that becomes overdue after k others starts at most 2(k+1) StartTimeouts after its
// MaxWait, or as many times of a token if these are longer: all starts under way end within one StartTimeout of the start of an overdue pod.
// Then none is over the limit and the queue has had its slot, so the next overdue pod starts.
// Every second of these is the one that is overdue for longest, and pods that become overdue
// later do not come before it. (TestMaxWaitBoundsTheWaitOfEveryPod: at most 1.7(k+1), with
// tenants who fill the node with starts that hang.) Every bound depends on k: if all starts
// hang, c slots and one over them start c+1 pods in a StartTimeout.
//
// # Loans
//
// A start may wait for a pod behind it in the queue: clients are not ready before their
// database is. A slot is lent (SlotLent) when for NoProgressAfter every slot was held by a
// start without progress ([Ticket.SetStalled]), while a pod waits that no other limit holds.
// If the starts on a loan stall too, the next loan is twice as large, NoProgressAfter later:
// a jam of n clients dissolves after log2(n) loans. When a start ends or makes progress,
// unused loans end. When a start gets ready, the next loan is one slot again, NoProgressAfter
// later at the earliest; and so it is when the starts are within the limit again, or three
// times NoProgressAfter after a loan.
//
// A start that has made no progress for NoProgressAfter also leaves its slot to the pods of other
// flows, at most as many as the limit in all. So pods of one namespace that hang do not leave the
// others one slot at a time.
//
// In the same way, starts are lent beyond a bound of Starting or a pacer when no pod that
// counts against it makes progress. On a resource, each such start is as large as the pod
// that was held when the loan was due. Nothing is lent beyond Running or claims.
//
// # Estimates
//
// A start is expected to take as long as the median of the last 16 that ended, or as the
// starts under way have taken in the median if that is longer: what has not ended teaches, too.
// While none has ended, it is expected to take twice as long as the oldest, and at least a
// minute. Half of the starts of an age end before they are twice as old (the law of Lindy): so
// one that takes longer than expected takes as long again. The expected wait of a ticket is when
// its slot is free if the starts before it take slots in turn, and at least what a slower limit
// gives.
//
// A place in the gate is a promise that the pod's turn comes within the time T that a process can
// wait there. It is given if that is so though every start before it takes as long as it does
// with a probability of less than 1 %:
//
//   - 12 times the mean, and twice the longest, of the last 128 starts, if one of its kind is among
//     them. All starts become slower together, so more slots make nothing surer.
//   - If none is, the same for starts of n other kinds, and 100/n(n+1) times their mean at least:
//     of log-normal durations that spread by a factor of three between kinds, the next is longer
//     than 50, 15 or 9 times the longest of one, two or three in one case of a hundred.
//   - 100 times its age, if it is under way for more than twice the longest (Lindy again).
//   - StartTimeout in any case, and if nothing has ended since the herd began (nothing started or
//     waited for 10 s before): then only free slots are promised. What an earlier herd took says
//     nothing for sure, as the same image may do other work.
//
// Each start takes StartTimeout unless it is as improbable that longer ones take all slots. When n starts
// have ended and j others last longer, the next does so with (j+1)/(n+j+2), the rule of succession, and so many
// of several as the beta-binomial distribution says. With j = 0, the first place behind full slots is given
// when so many have ended: 99 with one slot, 12 with two, 4 with four, 2 with eight.
//
// Before the pod go those before it in the queue that occupy the gate or are awaited. Those behind
// it that occupy the gate must still get their turn before their own deadline, unless its priority is
// higher or their containers ran more often. (Earlier pods that came back one after the other starved
// a pod with a place: 65 of 24,800 starts reached their deadline, now none.) In its own flow and
// band, an awaited pod counts only if it comes back before the turn of this one: a slot that is free
// now goes to the first that asks. A promise is kept for the 10 seconds in which the pod is to come.
// An overdue pod gets a place if it starts at once, over the limit. For a container that ran before
// ([RetriedLate]), the turn must be expected in T/2: a refusal costs as much as a place that runs out. The rate limit and limits on signals bound the places by what they admit
// in T/2. While the next token comes only after T, there is no place. In a jam there are places
// for what loans will allow within half a minute. Bounds on the starts of a group allow what
// the same estimate promises; its own groups allow a pod in any case, and a group without
// claims allows any number.
//
// A pull permit lets a pod pull its images; there are MaxPulling of them. A free one goes to the
// first pod that comes back, unless it is kept for a pod that is awaited, lacks nothing else, and
// is of a flow with fewer pulls or, with as many, of a higher priority. (With permits kept for the
// first in the queue, 60 pods that pull for 10 seconds took 30 to 45 % longer.)
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
// The linter allows no import that could do more. A decision takes the times below. With an adaptive limit, a start that ends, a
// process that comes, a new measurement, or a pod that may be refused adds a plan. It takes 0.5 ms with 110
// starts under way and 500 pods that wait (BenchmarkAllow).
//
// # What it costs
//
// A decision takes O(n log n) in the number n of waiting tickets, and allocates nothing. A new
// ticket allocates 1.4 kB. Microseconds of CPU per call, by n, with a waiter for half of the
// tickets (cpu-ns/op of GOMAXPROCS=1 go test -run - -bench Decision, on a busy node):
//
//	                                    no groups           20 groups that hold
//	                                    10    250    5,000    10    250    5,000
//	one scan, sorted again             0.2   10       410   0.2    9        350
//	the same, groups counted again     0.3   13       420   0.3   13        430
//	TryStart, refused                  0.3    4.7     120   0.4    4.8      110
//	Reserve                            0.3    4.8      90   0.3    3.5      100
//	End, the next admitted, Join       3.6   35     1,400   3.2   40      1,100
//
// # What it achieves
//
// Simulations use kubelet's times (make sim). In herds of starts of half a second to ten minutes, of
// one kind, of several, of unknown ones, and that become ten times slower midway, with 1 to 8
// slots, none of 7,612 places in the gate ran out by refusal, and 8 of 11,537 in the waiting room. A
// herd of 16 starts of 5 s in two slots takes 2.06 times its work by refusal, as nothing is sure
// after so few starts, and 1.17 times in the room; 100 starts of 1 s take 1.39 and 1.13 times theirs.
// The expected wait
// (TestExpectedWaitMatchesTheActualWait) is wrong by 19 % (median).
//
// # Sources
//
// Fair queuing: Nagle, RFC 970 (1985); Demers, Keshav and Shenker, "Analysis and Simulation of
// a Fair Queueing Algorithm" (1989); k8s.io/apiserver, pkg/util/flowcontrol/fairqueuing. The
// pacers are those of straggler (github.com/technicianted/straggler, pkg/pacer), the token
// bucket is that of golang.org/x/time/rate.
package throttle
