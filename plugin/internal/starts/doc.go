// Package starts decides which start goes on, and knows when each is over. It is the only package
// that joins, admits and ends tickets of the limiter.
//
// [Starts] takes what the runtime tells (Sandbox, Container, ContainerStarted ...), what kubelet
// tells (PodChanged) and what hooks ask (Attend); it writes the first into the book of pods and
// turns all into calls of the limiter. [Starts.Run] is the one loop: it advances the limiter, looks
// which starts are over, measures those of which nobody can say it, and hands what happened to the
// observer. [Valve] ends waits: the mode, a shutdown of the node, a shortage on it.
//
// # Locks
//
// [Ledger] has the lock of the book. While it is held, only the book, the policies' keeper and the
// limiter are called, in this order, each of which has the next one's lock below its own and calls
// nobody back; there is no I/O, no log and no question to the pod watch: the Ledger has none of
// them to call. Nobody who holds the limiter's lock calls out. All other mutexes are leaves.
// TestTheLockOfTheBookIsFreeWhileOthersAreAsked holds this rule.
package starts
