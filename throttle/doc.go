// Package throttle decides which pod of a node may start now.
//
// # The life of a start
//
// A pod that is about to start joins with [Limiter.Join] and gets a [Ticket].
// The ticket is Waiting until the limiter admits it, Starting while it holds a
// slot, and ends once: as Started (the pod made it, or is stuck and no longer
// counts) or as Gone (it was deleted, or nobody came back for it).
//
//	         admitted                    ready, settled, stuck ...
//	Waiting ----------> Starting (slot) -------------------------> Started
//	   |                    |
//	   '--------------------'--------------------------------------> Gone
//	            deleted, sandbox gone, abandoned
//
// # Two points of decision
//
// A pod is asked about twice. Before its images are pulled it is let up or not
// ([Ticket.LetUp]): that bounds how many pods wait near their turn and how many pull
// images, and takes no slot. When a process is about to start it takes a slot
// ([Ticket.TryStart], or by waiting between [Ticket.Attend] and
// [Ticket.Leave]).
//
// # The queue
//
// Tickets are ordered by pod priority; then first starts go before repeated ones,
// the fewer repeats (up to five) the earlier; then by arrival. The limiter serves
// the first ticket that is present: somebody stands there who can start the process
// at once. A pod that was refused and has not come back is not present. It
// keeps its place and never blocks one that is present, so a free slot is never
// left idle while somebody could use it.
//
// # Groups of pods
//
// A pod may belong to groups of policies ([Request.Groups], [Limiter.SetGroups]), and
// each policy bounds the pods of each of its groups ([Limiter.SetPolicies]): those that
// start, those that run, what they request, and how many start beside those that are
// ready. A pod counts among those that start from its admission until its slot ends, and
// among those that run until [Limiter.Finished]. A pod that is exempt, that was found
// starting, or that bypasses a policy counts, and is not held.
//
// Waiting pods stand in one queue per class. The pods of a class may be held by the same
// groups, for the same resources. Within a class the order is strict; a class that its
// policies hold makes nobody else wait. So a pod that requests memory passes one for
// which there is no CPU left, as it does with kube-throttler, and one that no policy
// bounds passes them all. A pod that exceeds a bound all by itself has a class of its
// own.
//
// A bound of those that run may hold a pod for hours. No deadline and no loan passes it,
// and whom it holds is not let up: it waits by being refused. What it has left is kept
// for the pods that were let up, then for those that come before in the class: many small
// pods do not pass a large one that is away for seconds. Every other limit of a group
// holds as those of the node do, deadlines may pass it, and of each class no more are let
// up than it is expected to let start in time.
//
// The pacers are those of straggler (github.com/technicianted/straggler, pkg/pacer):
// a pod is ready or it is starting, until it finishes; one that starts anew counts already,
// and is not held by them. straggler's linear pacer, asked
// for many at once, gives the whole step to those it is asked for, whatever starts
// already; here each pod is asked for alone, so that no step is exceeded.
//
// [Limiter.SetClaims] bounds the starts of a group by what a party outside gave this
// node of a bound on all nodes; [Limiter.Groups] says how many more could be used.
//
// # Limits
//
// Every limit is asked, then all are taken, or none. A refused start leaves
// every counter as it was. A limit on a signal ([Limiter.Observe]) allows a start
// while the signal is below its bound. A signal does not show at once what a start
// costs, so each start owes an increment until the signal was measured anew after
// it: until the time over which it was measured began after the start. So does one that
// is exempt and got no slot. Pressure on
// the CPU counts only where the CPU is used, for it also counts processes that
// their own CPU limit holds back. A signal that is blind, was never measured, or has
// not been for half a minute opens its limit.
//
// The adaptive limit is not told of starts without a slot. It takes those that start
// for samples of those that wait. With ten light pods of DaemonSets beside one slot, a
// load of 0.3 would be taken for proof that the node bears 45 of them, and the first 34
// that wait would start at once. Untold, it takes their load for that of the slots:
// heavy ones make it too careful for as long as they start, and their end shows
// within a window.
//
// Tokens, debts and what the adaptive limit learned outlive a time in which the
// settings have no such limit: to switch limits off and on again is no burst.
//
// # Pulls
//
// A free place to pull goes to whoever is back first. kubelet comes back in 10 to 15
// seconds: to keep the place for the first in line would leave it empty for so long.
// With places kept for whoever is first in line, 60 pods that pull for 10 seconds took,
// simulated, 30 to 45 % longer. Beside other limits the room bounds how far one can get
// ahead, and at the container the order counts again. But a place is kept for a pod of
// a higher priority that was refused within 20 seconds.
//
// # Deadlines
//
// Two deadlines bound the wait: MaxWait of the ticket, and the moment until
// which the one who stands there can wait ([Ticket.Expire]). Both admit over the
// limit, and both together never put more than one start above it: while one
// such start is above the limit, the next has to wait. A start that exceeded only
// the number of starts at a time is above it until it or enough others ended; one
// that exceeded another limit, until it ended. One whose MaxWait is over is let up
// without room or a place to pull, one at a time.
//
// # Loans
//
// A start may wait for one that stands behind it in the queue: a database that
// its clients need before they are ready. When every slot is held by a start that
// makes no progress ([Limiter.SetStalled]) for NoProgressAfter, and somebody is
// there who waits, and no other limit refuses, a slot is lent beyond the limit
// (SlotLent). Nobody knows which of those that wait will help, so one is tried; but
// one at a time would take n times NoProgressAfter with n clients in front. A loan
// whose takers stall as well has helped nothing, so the next is twice as large,
// NoProgressAfter later: 1, 2, 4 ... up to all that wait, and the jam dissolves
// after log2(n) loans. Doubling costs at most as many slots again as were needed,
// and they are given to starts that use nothing: for a start that works, there is no
// next loan.
//
// A loan is no higher limit. An end gives a lent slot back before anybody else gets
// a free one, and takes with it what is lent and unused; a higher limit does so, too.
// When nothing is lent any more, or three times NoProgressAfter have passed since
// the last loan (its takers worked on: it was no loan in vain), the next is one slot
// again. While the holders stall and whoever is lent a slot makes it, the next
// slot is lent at once: those that can start do so one by one.
//
// # How many may wait near their turn
//
// Whoever waits near its turn is there for the next slot, but can wait for a time T
// only. Whoever is refused comes back within 15 seconds, and then goes before all
// that stand behind it in the queue. So a pod is let up if its place among all that
// come (that stand there, were let up within 10 seconds or refused within 20) is
// below the room: all before it have their turn before its time is over.
//
// Let m be the mean duration of the last 16 starts that ended, a the age of the oldest
// unfinished one, c the number of slots (what an adaptive limit may soon come to, where
// that is more), f of which are free now. Slots come free at a rate of c/m as long as
// starts take as long as before. The room is f + c*T/(12m): a pod near its turn gets it
// in time even if starts become ten times slower at this moment, what is left of those
// under way included. It is at least f + c, one for each slot; at most f + c*T/2m and
// f + c*T/2a, a margin of two for an estimate that is wrong; and as long as nothing was
// observed, 2c+1: two rounds of starts and one in reserve. Where no more than 25 seconds
// of work are left (25/m pods for each slot that there is now), being there in time
// matters more than a slowdown, and the room is f + c*T/2m. Of a class that a policy
// bounds, no more count among those that come before others than the same estimate gives
// for its bounds. When loans are made or due, it is at least what will be lent in the 25
// seconds in which one who is refused now is back and there.
//
// The rate limit admits the tokens it has and one more per FillEvery, in half of T. A
// limit on a signal cannot tell: it is taken to admit as fast as in the last
// minute, and five where that says nothing. The room is the least of these, and at
// least 1.
//
// Simulated with kubelet's times (herd_test.go), over 240 seeded herds of 60 to 320
// pods that become ten times slower midway, 11 of 24,800 starts reach their
// deadline, no two at once; with an adaptive limit, in 60 herds, 21 of 14,200. With
// two slots and T = 100 s, the herds that stay as they are take 2 to 9 % longer than
// their work.
//
// # What it costs
//
// The queue and every deadline are ordered sets with ranks (order.go). A decision
// takes O(log n) in the number waiting, and allocates nothing; Snapshot and Named
// look at all, Turns at those present, a thousand at most. Measured on two shared
// cores of an AMD EPYC, the best of five runs while other programs kept both busy:
//
//	ns per call, waiting:          10   1,000  100,000
//	TryStart, refused             104     125      131
//	TryStart, admitted          1,094     868    1,274
//	LetUp                         170     194      208
//	Attend and Leave              185     302      650
//	Advance, nothing to do         84     107      195
//	Join, Attend, Leave, End    2,009   2,310    1,842
//	End, next admitted, Join    2,181   3,186    3,397
//	Turns                         391  30,054   17,093
//	rate.Limiter.Allow             86
//	semaphore.TryAcquire, Release  24
//
// With 1,000 waiting, a refusal costs 1.5 times rate.Limiter.Allow, an admission
// 10 times: it takes the bucket, moves the ticket between the sets, and is told.
//
// Where policies bound those that wait, a decision looks at the first of each class,
// for O(k log n) with k classes, and allocates nothing either. With 100 groups, each
// of which its policy holds:
//
//	ns per call, waiting:                 1,000  100,000
//	TryStart, refused, of no group        3,320   15,374
//	TryStart, refused, of a held group    3,456   14,366
//	LetUp, of no group                    8,477   30,263
//	LetUp, of a held group                4,596   23,664
//	Attend and Leave, of no group           626    1,867
//
// A slot that ends, the next of its group admitted and a new pod that joins take 3.8 µs
// with one group, 17 µs with 100 and 142 µs with 1,000, 10,000 waiting.
// Repeat it with go test -run - -bench . -benchmem.
//
// # Time and concurrency
//
// Every decision takes the time as a parameter; the package reads no clock and
// starts no goroutine. No method blocks. All exported methods are safe for
// concurrent use. A caller advances time with [Limiter.Advance], which says when
// it wants to be called next (the zero time: while nothing waits or starts, never),
// and is told of what happened through [Limiter.Changed] and [Limiter.Drain]. A time
// that is earlier than one given before counts as that one; only where Advance is
// given an earlier one, by more than 10 seconds, the clock was set back.
//
// # Sources
//
// The token bucket is that of golang.org/x/time/rate; the sets are treaps (Seidel and
// Aragon, Randomized Search Trees, 1996); the limits are those that PodPacemaker and
// the schedulers against thundering herds have; package adaptive names its own.
package throttle
