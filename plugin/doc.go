// Package plugin is the daemon: a containerd NRI plugin that paces the pods that
// start on its node.
//
// The way of one start:
//
//	NRI event -> handlers -> pacer -> throttle: ticket, decision
//	                           |
//	       pass, hold a moment, gate (an OCI hook waits), refuse (kubelet retries)
//	                           |
//	hook -> gate -> admitted -> the process starts -> pod watch or the node's own
//	signs say that the pod has started -> the slot ends -> next ticket
//
// containerd holds two global locks while it calls a plugin. Nothing in a handler
// waits, therefore, except for a hold of a fraction of a second that is bounded
// by a budget over all pods. Whatever fails, fails open: the pod starts, and a
// log line and a metric say so.
package plugin
