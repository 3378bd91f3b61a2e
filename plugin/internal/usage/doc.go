// Package usage measures what the pods of the node use, and says what that means for a start.
//
// [Quiet] says when a pod has calmed down after its start, where kubelet does not report whether it is
// ready. [Starts] says what a start took, and since when it makes no progress. Both measure a pod by its cgroup,
// or else by its processes; they know nothing of what the pod is, only its [Place].
package usage
