package admin

import (
	"cmp"
	"slices"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// Overview is the node in numbers: what the page shows. Every process that reaches the HTTP
// address can read it, without the permissions of the API server; so it names no
// pod and no namespace, but by the groups into which a StartPolicy puts pods, which the
// metrics at that address name, too.
type Overview struct {
	// About is without the runtime's socket and last error, and without the spec of
	// the config.
	About

	Slots   Slots   `json:"slots"`
	Waiting Waiting `json:"waiting"`
	// Policies is how many StartPolicies are in force.
	Policies int `json:"policies,omitempty"`
	// Ended are the starts that ended last, by reason.
	Ended []Count `json:"ended"`
	// Timeline are the last minutes, the oldest point first.
	Timeline []Point `json:"timeline"`
}

// Slots are the starts under way.
type Slots struct {
	// Used is how many hold a slot, Of how many may now, without those lent; Of is 0
	// where any number may.
	Used int `json:"used"`
	Of   int `json:"of"`
	Lent int `json:"lent"`
	// Without is how many start without a slot.
	Without int `json:"without"`
}

// Waiting is the queue.
type Waiting struct {
	Count int `json:"count"`
	// LongestSeconds is how long the pod that waits longest has waited.
	LongestSeconds Seconds `json:"longestSeconds"`
	// Reasons are what they wait for, the most frequent first.
	Reasons []Count `json:"reasons"`
}

// Count is how many there are of one reason.
type Count struct {
	Reason reasons.Reason `json:"reason"`
	Count  int            `json:"count"`
}

// NewOverview returns what of a status may be told to everybody.
func NewOverview(s Status, timeline []Point) Overview {
	o := Overview{
		About: s.About,
		Slots: NewSlots(s), Waiting: Waiting{Count: len(s.Waiting), Reasons: countReasons(s.Waiting)},
		Policies: len(s.Policies), Ended: countReasons(s.Ended), Timeline: timeline,
	}
	o.Runtime.Socket, o.Runtime.LastError, o.Config.Spec = "", "", nil
	for _, p := range s.Waiting {
		o.Waiting.LongestSeconds = max(o.Waiting.LongestSeconds, p.WaitedSeconds)
	}
	if o.Timeline == nil {
		o.Timeline = []Point{}
	}
	return o
}

// NewSlots counts the starts under way.
func NewSlots(s Status) Slots {
	slots := Slots{Of: s.Limit, Lent: s.Lent}
	for _, p := range s.Starting {
		if p.Slot {
			slots.Used++
		} else {
			slots.Without++
		}
	}
	return slots
}

// SlotsUsed counts the starts that hold a slot.
func SlotsUsed(starting []throttle.TicketView) (used int) {
	for _, v := range starting {
		if v.Slot {
			used++
		}
	}
	return used
}

func countReasons(pods []Pod) []Count {
	n := map[reasons.Reason]int{}
	for _, p := range pods {
		n[p.Reason]++
	}
	counts := make([]Count, 0, len(n))
	for reason, count := range n {
		counts = append(counts, Count{Reason: reason, Count: count})
	}
	slices.SortFunc(counts, func(a, b Count) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Reason, b.Reason))
	})
	return counts
}
