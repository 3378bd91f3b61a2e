// Package costs remembers what starts took, so that the next start of the same kind has an estimate
// before it begins.
//
// A [Start] is what one start took. A [Table] keeps, for each key, a mean and a mean deviation of
// each figure. The caller makes the keys, of which this package knows nothing: it gives several for
// one start, the most particular first, and [Table.Expect] answers with the first that the table has.
// A Table reads no clock, starts no goroutine and takes no lock.
//
// # The estimate
//
// The n-th observation m of a figure moves its mean a and its mean deviation v by
//
//	a += g (m - a)            g = max(1/8, 1/n)
//	v += h (|m - a| - v)      h = max(1/4, 1/n), with the a before
//
// from a = m and v = m/2 at the first. These are the gains and the beginning of Jacobson's estimate
// of a round-trip time ("Congestion Avoidance and Control", 1988; RFC 6298), which follows a change
// within about eight observations, and needs no history. Until there are as many, 1/n weighs all alike. a + 4v is
// exceeded about as seldom as TCP's timeout.
//
// An observation of the CPU time or of the idle time that is farther from the mean than 4v, than half of it and than
// half a second is of another program under the same key: what was known is forgotten, and it is the first.
//
// A start that a probe killed would have taken more: its figures are lower bounds, and count only
// where they exceed the mean. They count as no start: a key of which all starts were killed has Count 0.
//
// # Alone
//
// How long a start takes beside others says more of the others than of it. What the table keeps is
// how long it would take alone: the time that it took, less the time in which it stood in line for a
// CPU. Where several of its threads stood in line at once, that time may have been counted for each of them.
// No start takes less than it idled and then needs for its CPU time at its peak, which bounds the error.
package costs
