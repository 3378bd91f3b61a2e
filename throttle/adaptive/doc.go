// Package adaptive finds how many pods may start at a time from what the node shows while they start. The
// administrator chooses no number. The law in full, its constants, and how well herds start by it: deploy/adaptive.md.
//
// A [Controller] takes a [Sample] each time the node was measured and returns a limit. It reads no clock, starts no
// goroutine and takes no lock.
//
// # The load, and the goal
//
// The load is the CPU use plus the CPU pressure "some", from which the kernel counts the CPUs with a queue: 1 keeps all
// CPUs busy, at 2 a second task waits for each. Pressure counts only where CPUs are nearly full, and no more than twice
// what the starts themselves waited for. The goal is a load of 1.7: the queue fills the gaps between starts, and stretches them
// far less than the fourfold time at which probes kill.
//
// # Feedback
//
// If E starts made a load y, E * 1.7 / y starts meet the goal. Both are means over the same window, so the delay of the
// measurement causes no swinging (Smith, "Closer Control of Loops with Dead Time", 1957). Around that:
//
//   - A herd begins with what is right if each start keeps a CPU busy, and does not fall below it for three windows.
//   - Near a load of 2 the limit is at most that number, and falls. Under I/O pressure it is at most CPUs times the goal.
//   - A start that a probe may have killed on a full node halves the limit, which then grows by one in each round
//     (Jacobson and Karels, "Congestion Avoidance and Control", 1988).
//   - Min starts are always allowed, and as many as keep 0.7 of the CPUs busy, whatever other work does.
//   - A sensor that fails raises no limit.
//
// # Forecast
//
// Starts of one kind are alike, and package costs remembers them. [Controller.Allow] computes when the starts under way
// and those that wait end if they share the CPUs, less those that other work uses, and the disk evenly (forecast.go).
// Starts of a known kind join in their order, by the forecast alone:
//
//   - All that burn CPU when the start begins to burn keep no more cores busy than the goal.
//   - No probe kills the start, or one under way: each ends in the time that it takes alone plus 0.4 of what its probe
//     leaves beyond.
//   - Of starts that read, at most CPUs times the goal run at a time.
//   - All that wait start at once if all end in time, also if kinds of which none has ended yet take 5 times as long.
//   - One that must wait holds those behind it, but for those that idle until all before them have burned (Lifka, "The
//     ANL/IBM SP Scheduling System", 1995).
//
// A start of an unknown kind is held by feedback, and by two bounds: until one of the kind was measured, only as many
// start as CPUs bear them if all burn, and only as many idle at a time as could burn together later without a kill. An
// expectation that cannot be right is ignored.
//
// A wrong table delays, and never blocks, as Min starts are always allowed. A plan for 110 starts under way and 500 that
// wait takes 0.8 ms under the lock (BenchmarkAllow). Before a pod is refused, a second one is made: of what may
// start before kubelet tries the pod again, which trusts the table.
package adaptive
