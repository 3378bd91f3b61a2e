// Package adaptive finds how many pods may start at a time from what the node shows while they start. The
// administrator chooses no number. The law in full, its constants, and how well herds start by it: deploy/adaptive.md.
//
// A [Controller] takes a [Sample] each time the node was measured, and finds a limit. It reads no clock, starts no
// goroutine and takes no lock.
//
// # Feedback
//
// The load is the CPU use plus the CPU pressure "some", from which the kernel counts the CPUs with a queue: 1 keeps all
// CPUs busy. The goal is 1.7. If E starts made a load y, E * 1.7 / y starts meet the goal. Both are means over the same
// window, so the delay of the measurement causes no swinging. A herd begins with what is right if each start keeps a CPU
// busy. A start that a probe may have killed halves the limit. This limit holds starts of unknown kinds, also by how many
// of one kind are not measured yet or idle: [Controller.Allow].
//
// # Timetable
//
// Starts of one kind are alike, and package costs remembers them. Each start under way is given what it still needs of
// the CPUs, from when it begins to burn, in a timetable of the next minutes, then each that waits, in their order, of what
// those before it leave. So no two starts have the same CPU at the same time. A start of a known kind may start now if it
// ends later than alone by no more than the goal's queue takes, than its probe leaves, and than the probes of those leave
// that it could delay. Otherwise it keeps its place in the timetable, and one behind it may start before it if its own
// place allows that. Disks have a timetable, too. A wrong table delays, and never blocks, as Min starts are always allowed.
package adaptive
