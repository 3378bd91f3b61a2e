package nodesim

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

// node is a node that starts a herd.
type node struct {
	scenario  Scenario
	limiter   *throttle.Limiter // nil if the herd is not paced
	table     *costs.Table
	wait      Wait
	measureAt float64 // when the starts are measured next
	random    *rand.Rand
	began     time.Time
	now       float64 // seconds since the herd was created
	pods      []*pod
	hungry    []*pod // pods that want a CPU; kept between calls of share
	byTicket  map[*throttle.Ticket]*pod
	unready   int
	kills     int
	load      load
	totals    totals
}

func newNode(s Scenario, l *throttle.Limiter, began time.Time) *node {
	n := &node{
		scenario: s, limiter: l, began: began, byTicket: map[*throttle.Ticket]*pod{},
		random: rand.New(rand.NewPCG(s.Seed, 1)),
	}
	for _, k := range s.Running {
		for range k.Count {
			n.pods = append(n.pods, &pod{kind: k, stage: ready, phases: []phase{{serves, math.Inf(1)}}, killAt: math.Inf(1)})
		}
	}
	herd, keys := n.herd()
	for i, k := range herd {
		if k.LoadSeconds > 0 {
			k.LoadSeconds *= 2 * n.random.Float64()
		}
		p := &pod{kind: k, key: fmt.Sprintf("%d/%d", s.Seed, keys[i]), name: fmt.Sprintf("%s-%d", k.Name, i), life: Life{Kind: k.Name}, probe: n.random.Float64() * probeEvery, killAt: math.Inf(1)}
		p.phases = []phase{{idles, firstSeen + creationGap*float64(i)}, {idles, setupDelay}, {burns, setupSeconds}}
		n.pods = append(n.pods, p)
	}
	n.unready = len(herd)
	n.share()
	return n
}

// herd lists the pods in the order of their creation.
func (n *node) herd() (all []Kind, keys []int) {
	for key, k := range n.scenario.Herd {
		for range k.Count {
			all, keys = append(all, k), append(keys, key)
		}
	}
	if n.scenario.Shuffled {
		n.random.Shuffle(len(all), func(i, j int) {
			all[i], all[j] = all[j], all[i]
			keys[i], keys[j] = keys[j], keys[i]
		})
	}
	return all, keys
}

// next is the time in which no phase ends and no probe kills, seconds.
func (n *node) next() float64 {
	soonest := math.Inf(1)
	for _, p := range n.pods {
		soonest = min(soonest, p.left(), p.killAt-n.now)
	}
	return max(0, soonest)
}

// tiny is a time that counts as zero, seconds.
const tiny = 1e-8

// advance moves the node on to a time, before which nothing may end.
func (n *node) advance(now time.Time) {
	at := now.Sub(n.began).Seconds()
	past := at - n.now
	n.now = at
	n.totals.add(n.load, past)
	for _, p := range n.pods {
		if len(p.phases) > 0 {
			p.phases[0].left -= p.rate * past
			p.uses(past)
		}
	}
	for _, p := range n.pods {
		for p.stage != waiting && len(p.phases) > 0 && p.phases[0].left <= tiny {
			p.phases = p.phases[1:]
			if len(p.phases) == 0 {
				n.enter(p, now)
			}
		}
		if n.now >= p.killAt-tiny {
			n.kill(p, now)
		}
	}
	n.admitted(now)
	n.share()
}
