package timeline

import "time"

// HopelessKills is the number of kills after which a pod that is not ready has tried for long enough; see Hopeless.
const HopelessKills = 3

// Hopeless reports whether the herd plainly gets nowhere: some pods are not ready, and the liveness probe has killed
// each of them HopelessKills times since the last pod became ready. A herd that gets on, however slowly, is never
// hopeless, and neither is one in which a pod still waits for its first process.
func Hopeless(pods []Pod) bool {
	var last time.Duration
	for _, p := range pods {
		if at, ok := p.ReadyAt(); ok {
			last = max(last, at)
		}
	}
	hopeless := false
	for _, p := range pods {
		if _, ok := p.ReadyAt(); ok {
			continue
		}
		kills := 0
		for _, s := range p.Starts {
			if s.Killed && s.Ended > last {
				kills++
			}
		}
		if kills < HopelessKills {
			return false
		}
		hopeless = true
	}
	return hopeless
}
