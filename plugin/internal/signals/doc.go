// Package signals measures the load on the node for the limiter: CPU in use, iowait,
// load average, and pressure stall information (PSI). It reports when a signal that a
// limit needs cannot be measured, and when it is measured again.
//
// # What is measured
//
// The kernel offers counters: the time that tasks stalled since boot
// (/proc/pressure/{cpu,memory,io}, the field `total`) and the time each CPU spent
// in each state (/proc/stat). A [Monitor] reads them at intervals. A signal is how
// much a counter grew since an earlier sample, as a share of the time between. The
// kernel's own averages (avg10) are not used: they react seconds late, and show a
// herd of pods for a minute.
//
// CPU in use is all time but idle and iowait. It includes time that a hypervisor
// stole, because pods cannot have that. Where pods can use only some CPUs, it is of
// these, and so is CPU pressure, which the kernel reports only as a mean over all CPUs
// that are not idle: it is taken for the part of the pods' CPUs in that mean, as if no
// task waited for another CPU. Where a quota holds all pods, CPU in use and CPU pressure
// are those of the quota's cgroup (package cores). The load average is the kernel's over one
// minute. The kernel counts the runnable tasks every 5 s, so a reading begins 5 s
// before it was taken: it shows every admission before that.
//
// # Over which time
//
// A reading spans the time from the youngest sample that is at least a window old
// (2 s, unless configured) to now. Exceptions are:
//
//   - While the node idles, there is a sample every 10 s, or none if no limit needs
//     signals. When a pod comes then, the monitor takes a reading at once, which
//     spans the time since the last idle sample. That sample shows the node at rest,
//     so the next readings begin at the new one: they span 250 ms, 500 ms and so on,
//     up to the window.
//   - The first sample has nothing to compare with, so the signals count as never
//     measured, and a second sample follows 250 ms later in any case. The same holds
//     for a sample more than two minutes after the one before.
//   - A reading never spans less than 100 ms: the kernel counts CPU time in ticks of
//     1 to 10 ms.
//
// Spans come from the monotonic clock, so a change of the wall clock has no effect.
//
// The kernel counts a task that its own CPU limit throttles as stalled. The limiter
// decides what to make of that (throttle.Settings.MinUtilization).
//
// # What it costs
//
// A sample reads five files, which takes 0.3 ms of CPU time and makes 42 KB of garbage
// (BenchmarkSample, on two EPYC vCPUs); with 128 CPUs in /proc/stat, 2 ms and 250 KB.
// Four a second take 0.1 to 0.8 % of one CPU, and only while a pod waits.
//
// # Blindness
//
// A signal that cannot be read has an error and no value, so it does not look like
// an idle node. The error names the file and wraps one of the package's errors.
// Each sample tries again. A signal recovers with the second good sample, which is
// compared with the first. For the first 3 s, the limiter gets the last good reading
// instead. Only then does the limit on the signal open to all pods that wait: a single
// failure must not open it.
//
// The files are under a root, so that a daemon in a container can measure the
// host's /proc. /proc/pressure, /proc/stat and /proc/loadavg are the same in every
// container, unless something (lxcfs) is mounted over them.
package signals
