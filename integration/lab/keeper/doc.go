// Package keeper owns everything that one run of the lab puts on the machine.
//
// A run has one keeper process: the current program, started again. It has a
// mount namespace and a network namespace of its own, is the parent of every
// process of the run and reaps their orphans. A pipe ties it to its owner: when
// the owner ends, in whatever way, the keeper takes the run down. Where the
// keeper itself was killed, Sweep does the same from outside.
//
// What belongs to a run can be told without a list that somebody would have to
// keep true: its folder, its cgroups (their name holds the run's ID), and the
// processes that are in those cgroups or have their root in that folder. Mounts
// and network links live in namespaces that end with the run's last process.
package keeper
