// Package keeper owns everything that one run of the lab puts on the machine.
//
// A run has one keeper process: the current program, started again. The keeper has its own mount
// namespace and network namespace. It is the parent of every process of the run and reaps their
// orphans. A pipe ties it to its owner: when the owner ends, however it ends, the keeper takes the
// run down. If the keeper itself was killed, Sweep does the same from outside.
//
// No list says what belongs to a run, so none can be wrong. A run consists of its folder, its
// cgroups, whose name holds the run's ID, and the processes that are in those cgroups or have their
// root in that folder. Mounts and network links live in namespaces that end with the run's last
// process.
package keeper
