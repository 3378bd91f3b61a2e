package usage

import "time"

// QuietOptions say when a pod is quiet. The zero value is not valid; see DefaultQuiet.
type QuietOptions struct {
	Cores  float64       // the pod wanted fewer cores than this
	Window time.Duration // over this time
	Every  time.Duration // between two measurements of a pod
}

// DefaultQuiet is what the daemon uses.
func DefaultQuiet() QuietOptions {
	return QuietOptions{Cores: 0.2, Window: 2 * time.Second, Every: 500 * time.Millisecond}
}

// Quiet says when a pod has used little CPU lately and stood in line for little: on a node that
// is short of CPU, a pod that starves uses little, too. Make it with NewQuiet. It is not safe
// for concurrent use.
type Quiet struct {
	meter
	QuietOptions
	pods map[string]*quietPod // by UID
}

// quietPod is what was measured of one pod.
type quietPod struct {
	samples samples
	blind   bool // its CPU use could not be read, which was said
}

// NewQuiet returns a Quiet that knows no pod.
func NewQuiet(r Roots, o QuietOptions) *Quiet {
	return &Quiet{meter: newMeter(r), QuietOptions: o, pods: map[string]*quietPod{}}
}

// Due returns when the pod is to be measured next; a time that is not after now: now.
func (q *Quiet) Due(uid string) time.Time {
	if p := q.pods[uid]; p != nil && len(p.samples) > 0 {
		return p.samples[len(p.samples)-1].at.Add(q.Every)
	}
	return time.Time{}
}

// Measure measures a pod, and reports whether it is quiet. A pod that cannot be measured counts as
// quiet; blind is why, the first time. It reads files.
func (q *Quiet) Measure(now time.Time, uid string, place Place) (quiet bool, blind error) {
	p := q.pods[uid]
	if p == nil {
		p = &quietPod{}
		q.pods[uid] = p
	}
	used, err := q.cpu(place)
	if err != nil {
		if p.blind {
			return true, nil
		}
		p.blind = true
		return true, err
	}
	return q.judge(p, usage{at: now, cpu: used, inLine: q.inLine(place)}), nil
}

// judge takes a pod's usage of now. It is false until the window is full.
func (q *Quiet) judge(p *quietPod, now usage) bool {
	p.samples = p.samples.add(now, q.Window)
	took, used, full := p.samples.over(q.Window)
	return full && used.wanted() < q.Cores*took.Seconds()
}

// Forget drops what was measured of a pod.
func (q *Quiet) Forget(uid string) { delete(q.pods, uid) }
