// Package usage measures what pods use of the node while they start.
//
// A [Meter] knows what a start took, since when it makes no progress, and, for when kubelet does not report
// whether the pod is ready, whether the pod is quiet. It measures a pod by its cgroup, or else by its processes. Of the
// pod it knows only the [Target].
package usage
