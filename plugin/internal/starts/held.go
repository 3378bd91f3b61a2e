package starts

import (
	"slices"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
)

// kubelet asks for the app containers of a pod one after the other, and for the next one also if one failed. What the
// daemon held back must not start after what kubelet asks for later.

// hold notes that the daemon holds back a container: it is refused, or its hook waits.
func (p *Pod) hold(name string) {
	if !slices.Contains(p.held, name) {
		p.held = append(p.held, name)
	}
}

// release notes that the daemon lets a container start that it may have held back.
func (p *Pod) release(name string) {
	p.held = slices.DeleteFunc(p.held, func(held string) bool { return held == name })
}

// heldBefore returns a container that was held back and comes before the one of this name: by the pod's spec or, if that
// is not known, because kubelet asked for it first. It returns "" if there is none. If kubelet reports that it cannot
// make a container, does not start one again, or backs off for minutes after the waits of one have ended without a turn, it
// does not wait for that one either. It asks for nothing after an init container before that is done: what the daemon held
// back has run then, while there was no connection to the runtime.
func (p *Pod) heldBefore(name string, pod podwatch.Pod) string {
	asked, known := pod.Containers[name]
	for _, held := range p.held {
		other := pod.Containers[held]
		switch {
		case !known && held == name:
			return ""
		case other.Kind == podwatch.Init, pod.CannotMake, other.Over, other.CrashLooping, known && other.Place >= asked.Place:
		default:
			return held
		}
	}
	return ""
}
