// Package demo shows what pacing does. It starts the same herd of pods twice: first as fast as the
// node can, then with the real daemon. It draws the herd while it starts, and ends with a table and
// a report.
//
// The pods are containers of a throw-away containerd, which needs root. There is no kubelet. The
// demo plays the parts of kubelet that matter here: the retry after a refusal, the liveness probe,
// and the back-off between restarts. All times in the results come from the pods and the runtime,
// never from the daemon.
package demo
