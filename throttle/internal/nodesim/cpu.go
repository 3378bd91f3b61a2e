package nodesim

import (
	"cmp"
	"slices"
)

// share gives every pod its rate. The CPUs go to the pods in the order of their Share, and evenly to the starting pods
// and those that share evenly. No pod gets more than it can use. The disk's streams go to the reading pods.
func (n *node) share() {
	hungry := n.hungry[:0]
	readers := 0.0
	for _, p := range n.pods {
		switch p.does() {
		case burns, serves:
			hungry = append(hungry, p)
		case reads:
			readers++
		case idles:
			p.rate = 1
		case waits:
			p.rate = 0
		}
	}
	n.hungry = hungry
	slices.SortStableFunc(hungry, func(a, b *pod) int {
		return cmp.Or(cmp.Compare(a.turn(), b.turn()), cmp.Compare(a.most(), b.most()))
	})
	free, left := n.cores()-backgroundCores, [Behind + 1]int{}
	for _, p := range hungry {
		left[p.turn()]++
	}
	for _, p := range hungry {
		p.rate = min(p.most(), free)
		if turn := p.turn(); turn != Before {
			p.rate = min(p.most(), free/float64(left[turn]))
			left[turn]--
		}
		free -= p.rate
	}
	stream := min(1, n.streams()/max(1, readers))
	for _, p := range n.pods {
		if p.does() == reads {
			p.rate = stream
		}
	}
	n.account(hungry, readers, n.cores()-max(0, free))
}

func (n *node) cores() float64 { return float64(n.scenario.Cores) }

func (n *node) streams() float64 { return max(1, n.scenario.DiskStreams) }
