// Package gate is where a container waits for its turn. The container gets an OCI
// createRuntime hook, the program pacemaker-gate. The hook connects to the daemon of its node, where
// a [Server] answers it, and waits for the verdict. No NRI lock is held meanwhile.
//
// Everything here fails open. The server lets a hook go whose hello it does not
// understand. A connection may end without a verdict, because the daemon stops or
// cannot decide. The hook then waits for the next daemon, but only until the time to
// leave that it was sent last. So hooks without a daemon leave at the pace of the
// queue, and not all at once.
//
// Package wire has the arguments of the hook and the lines of the protocol.
package gate
