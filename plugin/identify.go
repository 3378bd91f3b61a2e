package plugin

import (
	"context"

	"github.com/containerd/nri/pkg/api"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// identify gives what the pod watch knows of a pod. For one that it does not
// know yet, and that would have to wait, it waits for the hold at most, so that
// the watch can catch up.
func (p *pacer) identify(ctx context.Context, sandbox *api.PodSandbox) (podwatch.Pod, bool) {
	if p.pods == nil {
		return podwatch.Pod{}, false
	}
	uid := podKey(sandbox)
	if pod, ok := p.pods.Get(uid); ok || !p.pods.Healthy() || !p.holds() {
		return pod, ok
	}
	r := newRecord(sandbox)
	r.see(sandbox, p.keeper.Needs())
	if exemption(p.config.Load().Spec.Exemptions, r, podwatch.Pod{}, false) != "" {
		return podwatch.Pod{}, false
	}
	var pod podwatch.Pod
	var known bool
	p.held(ctx, func(ctx context.Context) { pod, known = p.pods.Await(ctx, uid) })
	return pod, known
}
