// Package herdpage serves the page of a node's daemon on the machine of a user who may
// list pods, with a row for each pod of the node: how long it waited, how long its start
// took, and since when it is ready. The daemon itself names no pod at its HTTP address;
// these rows come from what kubelet reports of the pods.
package herdpage
