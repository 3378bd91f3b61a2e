// Package sensor measures how hard-pressed a node is, for the limits of package
// throttle: CPU in use, iowait, load average, and pressure stall information (PSI).
//
// # What is measured
//
// The kernel offers counters: the time that tasks stalled since boot
// (/proc/pressure/{cpu,memory,io}, the field `total`) and the time each CPU spent
// in each state (/proc/stat). A [Sampler] reads them now and then; a signal is
// what a counter gained since an earlier sample, as a share of the time between.
// The kernel's own averages (avg10) are not used: they answer seconds late, and
// remember a herd for a minute.
//
// CPU in use is all time but idle and iowait, so time stolen by a hypervisor
// counts: pods cannot have it. The load average is the kernel's over one minute;
// its reading begins 5 s before it was taken, for the kernel counts the runnable
// tasks every 5 s: so an admission before that is in it.
//
// # Over which time
//
// A reading spans the time from the youngest sample that is at least a window old
// (2 s, unless configured) to now. Around that rule:
//
//   - While the node idles there is a sample every 10 s, or none where no limit
//     asks for signals. When somebody comes then, a reading is taken at once: it spans
//     the time since the last idle sample. That was taken for the node at rest, so
//     the next readings begin at this moment: they span 250 ms, 500 ms and so on up
//     to the window.
//   - The very first sample has nothing to be compared with: the signals were never
//     measured, and a second sample follows 250 ms later, whoever waits or not. The
//     same goes for a sample that follows the last one after more than two minutes.
//   - A reading never spans less than 100 ms: the kernel counts CPU time in ticks of
//     1 to 10 ms.
//
// Spans come from the monotonic clock; a change of the wall clock has no effect.
//
// The kernel counts a task that its own CPU limit throttles as stalled: on a 6.18
// kernel with cgroup v1, a process with a tenth of a core made 88 % CPU pressure on
// two CPUs of which 6 % were in use. What to believe of that is for the limiter to
// say.
//
// # What it costs
//
// A sample reads five files: 0.1 to 0.2 ms and 25 KB of garbage (BenchmarkSample, on
// two EPYC vCPUs), so four a second take less than 0.1 % of one CPU, and only while
// somebody waits.
//
// # Blindness
//
// A signal that cannot be read has an error, which names the file and wraps one of
// the package's errors, and no value: nobody can take blindness for an idle node.
// Every sample tries anew. A signal recovers with the second good sample, for the
// first is what it is compared with.
//
// Files are read under a root, so that a daemon in a container can measure the
// host's /proc. The kernel gives the same /proc/pressure, /proc/stat and
// /proc/loadavg everywhere, unless something (lxcfs) is mounted over them.
package sensor
