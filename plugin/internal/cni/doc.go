// Package cni installs the waiting room on a node: the program pacemaker-cni, and a CNI
// configuration that runs it at the end of the chain.
//
// The configuration is a separate file whose name comes before all others: a copy of the first of the
// others, with pacemaker-cni at its end. The installer changes no other file. It updates the copy when the
// original changes. It removes the copy when there is no original, or when the program cannot be executed:
// a configuration that names a missing program keeps every pod from starting. So it installs neither when
// a plugin of the original is not in the same folder: the runtime has its plugins elsewhere then. When
// another program changes or removes the copy, the installer leaves it so. After a restart it knows a
// changed copy by its last plugin, which is not pacemaker-cni.
//
// If a configuration comes before the copy all the same, there is none, unless that configuration refers to the
// copy, as the configuration of Multus may. Then the first configuration after it is copied: a copy of the
// configuration of Multus would call itself. And the copy and the program are not removed as long as a configuration
// names them.
//
// # What containerd does with the folder
//
// This was read in containerd 1.7.35, 2.0.0, 2.0.11, 2.1.5, 2.2.5, 2.2.9, 2.3.7 and 2.4.2
// (cni_conf_syncer.go, sandbox_run.go, sandbox_stop.go, status.go and
// update_runtime_config.go of its CRI server) and in go-cni 1.1.9 to 1.1.14 (cni.go, opts.go):
//
//   - It uses the first of the files *.conf, *.conflist and *.json by name. If that file is
//     invalid, it uses none, and the node is not ready.
//   - It reads the folder again when a file or the folder is written, removed or renamed (fsnotify's
//     Write, Remove, Rename), but not when a file is created (Create) or its mode changes (Chmod). So it
//     notices a file that is renamed within the folder, but not one that is moved in from another folder.
//     It does not notice what changes in a folder in the folder, such as multus.d.
//   - It reads the folder once for each such event, one after the other. A file that is written in place, or as another
//     file that is renamed, is at least two events.
//   - Reading the folder (Load) takes go-cni's write lock. kubelet's UpdateRuntimeConfig takes it
//     only if containerd writes the configuration from a template, and only while there is none.
//   - ADD, DEL, CHECK, Status and GetConfig take the read lock. From go-cni 1.1.11 on they hold it until
//     the plugins have ended: in containerd 2.0.11 and all later versions, not in 1.7 and 2.0.0. So
//     while Load waits for an ADD that waits, no sandbox of the node is made or removed. This is why
//     pacemaker-cni ends at once when anything in the folder changes. The ADDs that came meanwhile run before
//     Load is called for the next event, so none of them may wait either.
//   - The lock that registrations of NRI plugins wait for is taken after the network is
//     made, so a pod that waits in ADD does not hold it.
//   - ADD runs the plugin as a child of containerd. containerd kills it when kubelet's call ends,
//     because it timed out, kubelet was restarted, or the pod was deleted.
//   - DEL and the cache of results use the name of the network, which the copy keeps.
package cni
