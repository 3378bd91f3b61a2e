// Package costs remembers what starts took, and expects the next start of the same kind to take the same. A [Table] keeps
// a mean and a mean deviation of each figure of a [Start], by key. The caller chooses the keys: several for one start, the
// most specific first, each beginning with the namespace, so that a tenant does not teach the table what pods of another
// take. A Table reads no clock, starts no goroutine and takes no lock.
//
// The n-th observation m of a figure moves its mean a and its mean deviation v by
//
//	a += g (m - a)            g = max(1/8, 1/n)
//	v += h (|m - a| - v)      h = max(1/4, 1/n), with the a before
//
// from a = m and v = m/2 at the first. These are the gains and the initial values of Jacobson's estimate of a round-trip
// time ("Congestion Avoidance and Control", 1988; RFC 6298). Before there are eight observations, 1/n gives all the same
// weight. After that, the estimate follows a change within about eight.
//
// A CPU time or an idle time may be farther from the mean than 4v, half the mean and half a second. Then it is of another
// program under the same key: the table forgets what it knew, and the observation is the first.
//
// A start that a probe killed would have taken longer. Its figures are minimums, which count only if they exceed the
// mean. They do not count as a start: a key with killed starts only has Count 0.
package costs
