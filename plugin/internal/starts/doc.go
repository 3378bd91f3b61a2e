// Package starts decides which start goes on, and knows when each is over. It is the only package
// that joins, admits and ends tickets of the limiter.
//
// [RuntimeEvents] takes what the runtime tells (Sandbox, Container, ContainerStarted ...) and writes it
// into the book of pods; [Starts] takes what kubelet tells (PodChanged) and what hooks ask (Attend). Both
// turn it into calls of the limiter. [Starts.Run] is the one loop: it advances the limiter, looks
// which starts are over, measures those under way, has learned what they took, and hands what happened to the
// observer. [Valve] ends waits: the mode, a shutdown of the node, a shortage on it.
//
// # Locks
//
// [Ledger] has the lock of the book. While it is held, only the book, the policies' matcher and the
// limiter are called, in this order, each of which has the next one's lock below its own and calls
// nothing back; the Ledger has no log, no events and no pod watch to call. The limiter calls nothing
// under its lock. TestTheLockOfTheBookIsFreeWhileOthersAreAsked holds this rule.
//
// Two others are not leaves. The matcher of policies, when they change, tells the log, the claims
// and the pod watch of it under its lock; none of them calls back. The sensors log and write events
// on the node under theirs; no start waits for it.
package starts
