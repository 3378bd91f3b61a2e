package plugin

import (
	"fmt"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/crd"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// listing returns a runtime's list of this many pods with two containers each, all started at the given time.
func listing(pods int, since time.Time) (sandboxes []*api.PodSandbox, ctrs []*api.Container) {
	for i := range pods {
		s := &api.PodSandbox{Id: fmt.Sprintf("s%d", i), Uid: runtimetest.NewUID(), Namespace: "default", Name: fmt.Sprintf("pod-%d", i)}
		sandboxes = append(sandboxes, s)
		for _, name := range []string{"app", "sidecar"} {
			ctrs = append(ctrs, &api.Container{
				Id: fmt.Sprintf("%s-%d", name, i), PodSandboxId: s.Id, Name: name,
				State: api.ContainerState_CONTAINER_RUNNING, StartedAt: since.UnixNano(),
			})
		}
	}
	return sandboxes, ctrs
}

// BenchmarkSynchronize measures the list of 500 pods, for which the runtime waits. One case has pods that started
// long ago. In the other, all pods start, as after a reboot.
func BenchmarkSynchronize(b *testing.B) {
	for name, age := range map[string]time.Duration{"Started": time.Hour, "Starting": time.Second} {
		b.Run(name, func(b *testing.B) {
			n := newNode(b, oneAtATime)
			n.options.Log = discard()
			sandboxes, ctrs := listing(500, time.Now().Add(-age))
			for b.Loop() {
				b.StopTimer()
				r := slowly()
				r.pods = n.pods
				d := newDaemon(n.options, cores.Of(2), crd.Documents{}, nil, r)
				d.applier.configure(n.config)
				b.StartTimer()
				handlerOf(d).Synchronize(sandboxes, ctrs)
			}
		})
	}
}
