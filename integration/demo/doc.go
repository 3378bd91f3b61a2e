// Package demo shows what pacing does: the same herd of pods twice, first as
// fast as the node takes them, then with the real daemon. It draws the herd
// while it starts, and ends with a table and a report.
//
// As root the pods are containers of a throw-away containerd; otherwise they are
// ordinary processes on the in-process NRI runtime. Either way there is no
// kubelet: the demo plays the parts of it that matter here, asking again after
// a refusal, the liveness probe and the back-off between restarts. All times in
// the results are those that the pods themselves and the runtime tell, never
// the daemon's.
package demo
