// Package cni installs the waiting room on a node: the program pacemaker-cni, and a CNI
// configuration that has it run at the end of the chain.
//
// The configuration is a file of its own, whose name comes before those of others: a copy
// of the first of them, with pacemaker-cni at its end. No other file is touched. It is
// written anew when that one changes, and removed when there is none or when the program
// cannot be run, for a configuration that names a program which is not there keeps every
// pod from starting. Where another program removes or changes it, it stays as that left it.
//
// # What containerd does with the folder
//
// Read in containerd 1.7.35, 2.0.0, 2.0.11, 2.1.5, 2.2.5, 2.2.9, 2.3.7 and 2.4.2
// (cni_conf_syncer.go, sandbox_run.go, sandbox_stop.go, status.go and
// update_runtime_config.go of its CRI server) and in go-cni 1.1.9 to 1.1.14 (cni.go, opts.go):
//
//   - It takes the first of the files *.conf, *.conflist and *.json by name. If that one is
//     invalid, it takes none, and the node is not ready.
//   - A file or the folder that is written, removed or renamed (fsnotify's Write, Remove,
//     Rename) makes it read the folder anew; one that is made (Create) or has its mode
//     changed (Chmod) does not. So a file that is moved in from another folder is not seen,
//     and one that is renamed within the folder is.
//   - To read anew takes go-cni's write lock (Load). kubelet's UpdateRuntimeConfig does so
//     only where containerd writes the configuration from a template, and only while there
//     is none.
//   - ADD, DEL, CHECK, Status and GetConfig take its read lock. From go-cni 1.1.11 on they keep it until
//     the plugins have ended: in containerd 2.0.11 and all later ones, not in 1.7 and 2.0.0. So
//     while an ADD waits and Load waits for it, nothing on the node gets on: this is why
//     pacemaker-cni leaves at once when anything in the folder changes.
//   - The lock that registrations of NRI plugins wait for is taken after the network is
//     made, so a pod that waits in ADD does not hold it.
//   - ADD runs the plugin as a child of containerd, and kills it when kubelet's call ends,
//     because kubelet gave it up, was restarted, or the pod was deleted.
//   - DEL and the cache of results go by the name of the network, which the copy keeps.
package cni
