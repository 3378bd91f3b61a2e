package admin

import "github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"

// Overview is the state of a node in numbers, which the page shows. Every process that reaches the HTTP address
// can read it without permissions, so it names no pod and no namespace. The metrics at the same address name neither pods nor
// groups of StartPolicies, but the entries of startAfter.
type Overview struct {
	// About has no Runtime.Socket, Runtime.LastError and Config.Spec, and HeldBy no Detail with the reason StartAfter.
	About

	Slots   Slots   `json:"slots"`
	Waiting Waiting `json:"waiting"`
	// Policies is how many StartPolicies are in force.
	Policies int `json:"policies,omitempty"`
	// Ended counts the starts that ended last, by reason.
	Ended map[reasons.Reason]int `json:"ended"`
}

// Slots counts the starts under way.
type Slots struct {
	// Used is the number of starts that hold a slot.
	Used int `json:"used"`
	// Of is how many slots there are, without those that are lent; 0 means any number.
	Of int `json:"of"`
	// Lent is how many slots are lent beyond Of.
	Lent int `json:"lent"`
	// Without is the number of starts under way that hold no slot, such as the starts of exempt pods.
	Without int `json:"without"`
}

// Waiting summarizes the queue.
type Waiting struct {
	Count int `json:"count"`
	// LongestSeconds is the longest wait so far.
	LongestSeconds Seconds `json:"longestSeconds"`
	// Reasons counts what the pods wait for.
	Reasons map[reasons.Reason]int `json:"reasons"`
}

// newOverview returns the part of a status that everybody may read.
func newOverview(s Status) Overview {
	o := Overview{
		About: s.About,
		Slots: NewSlots(s), Waiting: Waiting{Count: len(s.Waiting), LongestSeconds: s.LongestWait(), Reasons: countReasons(s.Waiting)},
		Policies: len(s.Policies), Ended: countReasons(s.Ended),
	}
	if o.HeldBy != nil && o.HeldBy.Reason == reasons.StartAfter {
		o.HeldBy = new(*o.HeldBy)
		o.HeldBy.Detail = ""
	}
	o.Runtime.Socket, o.Runtime.LastError, o.Config.Spec = "", "", nil
	return o
}

// LongestWait returns how long the pod that waits longest has waited, or 0 if no pod waits.
func (s Status) LongestWait() (longest Seconds) {
	for _, p := range s.Waiting {
		longest = max(longest, p.WaitedSeconds)
	}
	return longest
}

// NewSlots counts the starts under way in a status.
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

func countReasons(pods []Pod) map[reasons.Reason]int {
	n := map[reasons.Reason]int{}
	for _, p := range pods {
		n[p.Reason]++
	}
	return n
}
