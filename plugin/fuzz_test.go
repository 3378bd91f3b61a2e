package plugin

import (
	"context"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
)

// Whatever the runtime tells of a pod and a container, and in whatever order, no handler panics, and one slot is used at
// most once.
func FuzzMessages(f *testing.F) {
	seed := func(pod *api.PodSandbox, ctr *api.Container, calls ...byte) {
		a, err := proto.Marshal(pod)
		require.NoError(f, err)
		b, err := proto.Marshal(ctr)
		require.NoError(f, err)
		f.Add(a, b, calls)
	}
	pod := &api.PodSandbox{
		Id: "s", Uid: "u", Namespace: "shop", Name: "web-0", Labels: map[string]string{"pod-template-generation": "1"},
		Annotations: map[string]string{"kubernetes.io/config.source": "api"}, Linux: &api.LinuxPodSandbox{CgroupParent: "/kubepods/podu"},
	}
	ctr := &api.Container{Id: "c", PodSandboxId: "s", Name: "app", State: api.ContainerState_CONTAINER_RUNNING, StartedAt: time.Now().UnixNano(), Pid: 1 << 22}
	seed(pod, ctr, 1, 2, 3, 4, 5, 6, 7)
	seed(pod, ctr, 0, 5, 1, 2, 2, 3, 0)
	seed(&api.PodSandbox{}, &api.Container{}, 3, 2, 1, 0, 4, 7)
	n := unconnectedNode(f, oneAtATime, standalone)
	n.options.Log, n.options.Hold = discard(), 0
	f.Fuzz(func(t *testing.T, sandbox, container, calls []byte) {
		pod, ctr := &api.PodSandbox{}, &api.Container{}
		if proto.Unmarshal(sandbox, pod) != nil || proto.Unmarshal(container, ctr) != nil {
			return
		}
		d := newDaemon(n.options, cores.Of(2), crd.Documents{}, nil, slowly())
		d.applier.configure(n.config)
		h := handlerOf(d)
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // no call waits
		for _, call := range calls[:min(len(calls), 16)] {
			switch call % 8 { // a refusal is an error
			case 0:
				h.Synchronize([]*api.PodSandbox{pod}, []*api.Container{ctr})
			case 1:
				_ = h.RunPodSandbox(ctx, pod)
			case 2:
				_, _, _ = h.CreateContainer(ctx, pod, ctr)
			case 3:
				require.NoError(t, h.PostStartContainer(ctx, pod, ctr))
			case 4:
				_, err := h.StopContainer(ctx, pod, ctr)
				require.NoError(t, err)
			case 5:
				require.NoError(t, h.RemoveContainer(ctx, pod, ctr))
			case 6:
				require.NoError(t, h.StopPodSandbox(ctx, pod))
			case 7:
				require.NoError(t, h.RemovePodSandbox(ctx, pod))
			}
		}
		require.LessOrEqual(t, len(d.Status().Starting), 1)
	})
}
