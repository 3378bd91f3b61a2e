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
// ([Ticket.LetUp]): that only bounds how many pods wait near their turn, and
// takes nothing. When a process is about to start it takes a slot
// ([Ticket.TryStart], or by waiting between [Ticket.Attend] and
// [Ticket.Leave]).
//
// # The queue
//
// Tickets are ordered by pod priority, then by arrival. The limiter serves the
// first ticket that is present: somebody stands there who can start the process
// at once. A pod that was refused and has not come back is not present. It
// keeps its place and never blocks one that is present, so a free slot is never
// left idle while somebody could use it.
//
// # Limits
//
// Every limit is asked, then all are taken, or none. A refused start leaves
// every counter as it was.
//
// # Deadlines
//
// Two deadlines bound the wait: MaxWait of the ticket, and the moment until
// which the one who stands there can wait ([Ticket.Expire]). Both admit over the
// limit, and both together never put more than one start above it: while one
// such start is above the limit, the next has to wait. A start that exceeded only
// the number of starts at a time is above it until it or enough others ended; one
// that exceeded another limit, until it ended.
//
// # How many may wait near their turn
//
// Let d be a pessimistic duration of a start, the greater of the mean of the
// last ends and the age of the oldest unfinished start, c the number of slots,
// f of which are free now, and T the time somebody can wait. Slots come free at a
// rate of c/d, so f + c*T/(2d) starts are admitted in half the time; the other half
// is the margin for an estimate that is wrong by a factor of two. As long as
// nothing was observed that is taken to be 2c+1: two rounds of starts and one in
// reserve. The rate limit admits the tokens it has and one more per FillEvery. The
// room is the least of these, and at least 1.
//
// # Time and concurrency
//
// Every decision takes the time as a parameter; the package reads no clock and
// starts no goroutine. No method blocks. All exported methods are safe for
// concurrent use. A caller advances time with [Limiter.Advance], which says when
// it wants to be called next, and is told of what happened through
// [Limiter.Changed] and [Limiter.Drain].
package throttle
