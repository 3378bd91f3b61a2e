// Package usage measures what the pods of the node use, and says what that means for a start.
//
// [StartMeter] says what a start took, since when it makes no progress, and, where kubelet does not report
// whether the pod is ready, when the pod has calmed down. It measures a pod by its cgroup, or else by its
// processes, and knows nothing of what the pod is, only its [Place].
package usage
