// Package wire is the protocol of the gate: the arguments of the hook pacemaker-gate, and
// the lines that the hook and the daemon exchange over a unix stream socket.
//
// The runtime runs the hook with four arguments: the path of the daemon's socket, the first line of
// either end, a hello and a forecast, and the container's cgroup. See [Argv].
//
// The hook sends one line, its hello, and then only reads:
//
//	wait 1 pod=UID container=ID name=NAMESPACE/NAME since=UNIX_US deadline=UNIX_US
//
// pacemaker-cni waits before the sandbox exists. It sends the same line with room=1 at the
// end, and with the ID that the sandbox will have instead of the ID of a container. brief=1
// after that says that it cannot wait at this moment: without a verdict it leaves with the first
// line. The daemon answers with any number of forecasts (turn) and alive lines, then with exactly one verdict,
// and closes the connection:
//
//	turn LEAVE_AT_UNIX_US PLACE [PACE_MS]
//	alive
//	go REASON
//	abort REASON
//
// PLACE is the place of the hook among the hooks that wait, counted from 1. PACE is
// the time between two hooks that leave without a daemon. A daemon that still decides sends
// an alive line every [AliveEvery]. A hook treats a daemon that sends nothing for
// [SilenceMost] as gone.
//
// A connection may end without a verdict. Then the hook asks again, until the LEAVE_AT time
// that it was sent last. If it notices only after that time that no daemon decides, it lets
// the hooks before it leave first, one each PACE. To leave, a hook takes a lock (flock) on the
// folder of the socket, and holds it for PACE before it leaves. So no two hooks leave within
// PACE, whatever times they were sent and however late they are.
//
// Every line ends in a newline and has at most [MaxLine] bytes, including the newline.
// Values are printable ASCII without spaces. Times count from the Unix epoch on the node's
// wall clock, in microseconds, as the order of the queue depends on since. The zero
// [time.Time] is written as 0.
//
// A waiting hook must be small, and every package that it imports takes memory. So this
// package imports nothing that imports fmt or net.
package wire
