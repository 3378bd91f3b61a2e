package nodesim

import (
	"math"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// enter moves a pod whose phases are all over to its next stage.
func (n *node) enter(p *pod, now time.Time) {
	switch p.stage {
	case settingUp, inRoom:
		n.present(p, now)
	case launching:
		n.begin(p)
	case starting:
		p.life.Served, p.killAt = n.now, math.Inf(1)
		wait := math.Mod(p.probe-n.now, probeEvery)
		if wait < 0 {
			wait += probeEvery
		}
		p.stage, p.phases = probing, []phase{{idles, wait + toldAfter}}
	case probing:
		p.life.Ready = n.now
		n.unready--
		n.learn(p, false, now)
		p.stage, p.phases = ready, []phase{{serves, math.Inf(1)}}
		if p.ticket != nil {
			p.ticket.End(now, reasons.Ready)
		}
	case waiting, ready:
	}
}

// present puts a pod before the limiter.
func (n *node) present(p *pod, now time.Time) {
	if n.limiter == nil {
		p.life.Created = n.now
		n.launch(p)
		return
	}
	p.ticket = n.limiter.Join(now, n.request(p))
	n.byTicket[p.ticket] = p
	switch reserved := n.wait == Gate || p.ticket.Reserve(now, gateSeconds*time.Second, throttle.RetriedSoon).Granted; {
	case reserved && p.stage == inRoom:
		p.stage, p.phases = settingUp, []phase{{idles, leaveDelay}}
		return
	case !reserved && n.wait == Room:
		p.stage, p.phases = inRoom, []phase{{idles, roomRound}}
		return
	case !reserved:
		p.stage, p.phases = settingUp, []phase{{idles, comeBackAfter + comeBackSpread*n.random.Float64()}, {burns, refusedSeconds}}
		return
	}
	p.life.Created = n.now
	p.stage, p.phases = waiting, []phase{{waits, math.Inf(1)}}
	p.ticket.Wait(now)
}

// admitted launches the pods that the limiter has admitted.
func (n *node) admitted(now time.Time) {
	if n.limiter == nil {
		return
	}
	n.limiter.Advance(now)
	for _, e := range n.limiter.Drain() {
		if e.State != throttle.Starting {
			continue
		}
		p := n.byTicket[e.Ticket]
		p.ticket.StopWaiting(now)
		n.launch(p)
	}
}

func (n *node) launch(p *pod) {
	p.took = course{key: p.learnedAs(), began: n.now}
	p.stage, p.phases = launching, []phase{{idles, launchDelay}, {burns, launchSeconds}}
}

// begin starts the process of a pod.
func (n *node) begin(p *pod) {
	p.life.Started = n.now
	p.stage, p.phases = starting, p.startPhases()
	if !p.kind.Liveness {
		return
	}
	p.killAt = n.now + p.kind.Patience
	if p.kind.Patience == 0 {
		p.killAt = n.now + livenessDelay + livenessEvery*(livenessFailures-1+n.random.Float64())
	}
}

// kill ends the process of a pod. Its start is over. The next one is a start of its own, behind the others.
func (n *node) kill(p *pod, now time.Time) {
	n.kills++
	p.life.Kills++
	p.killAt = math.Inf(1)
	n.learn(p, true, now)
	p.stage, p.phases = settingUp, []phase{{idles, restartDelay}, {idles, setupDelay}, {burns, setupSeconds}}
	if p.ticket != nil {
		p.ticket.End(now, reasons.CrashLoop)
	}
}

// count counts the pods at each stage.
func (n *node) count(m *Measured) {
	for _, p := range n.pods {
		switch p.stage {
		case starting, probing:
			m.Starting++
			m.Slots++
		case launching:
			m.Slots++
		case waiting:
			m.Waiting++
		case settingUp, inRoom, ready:
		}
	}
}
