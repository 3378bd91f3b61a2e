// Package wire is what the two ends of the gate agree on: the arguments of the
// hook pacemaker-gate and the lines that it and the daemon exchange over a unix
// stream socket.
//
// The hook says one line, and then only listens:
//
//	wait 1 pod=UID container=ID name=NAMESPACE/NAME since=UNIX_US deadline=UNIX_MS
//
// pacemaker-cni, which waits before the sandbox exists, says the same with room=1 at the
// end, and the ID of the sandbox to come for that of the container. The daemon answers with any number of turn and alive lines, then with exactly
// one verdict, and closes the connection:
//
//	turn LEAVE_AT_UNIX_MS POSITION [PACE_MS]
//	alive
//	go REASON
//	abort REASON
//
// POSITION is the hook's place among those that wait, counted from 1. PACE is the time
// between two that leave without a daemon. An alive line
// comes every [AliveEvery] from a daemon that still decides; one that says nothing
// for [SilenceMost] is as good as gone.
//
// A connection that ends without a verdict says nothing about the start: the
// hook asks again, until the leave-at time that it was told last. If it finds out only
// afterwards that no daemon decides, it lets those before it go first, one each PACE. Hooks
// leave by a lock (flock) on the folder of the socket, which each keeps for PACE before it
// leaves: whatever they were told and however late they are, no two leave within it.
//
// Every line ends in a newline and is at most [MaxLine] bytes long with it.
// Values are printable ASCII without spaces. Times count from the
// Unix epoch on the node's wall clock, in milliseconds, and in microseconds where the order
// of the queue depends on them (since); the zero [time.Time] is written as 0.
//
// A waiting hook has to be small, and every package that it imports is mapped
// into its memory, so this one imports nothing that pulls in fmt or net.
package wire
