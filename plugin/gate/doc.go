// Package gate is where a container waits for its turn: an OCI createRuntime
// hook, added to the container by [Hook], connects to this node's daemon, whose
// end is [Server], and waits for its verdict. No NRI lock is held meanwhile.
//
// Everything here fails open. A hook that cannot be understood is let through. A
// connection that ends without a verdict, because the daemon stops, cannot decide
// or speaks another version, leaves the hook waiting for the next daemon until the time it was told
// last, so that hooks without a daemon leave at the pace of the queue and not all
// at once.
//
// The arguments of the hook and the lines of the protocol are in package wire.
package gate
