package throttle

import (
	"maps"
	"slices"
)

// mostAmount is the greatest amount that counts: the sum of 500 such is still a number.
const mostAmount = 1 << 54

func clamp(amount int64) int64 { return min(max(amount, 0), mostAmount) }

// limits are the GroupLimits of a policy as they are asked.
type limits struct {
	given             GroupLimits
	starting, running bounds
}

// noLimits are those of a policy that is not there.
var noLimits = newLimits(GroupLimits{})

func newLimits(given GroupLimits) *limits {
	return &limits{given: given, starting: newBounds(given.Starting), running: newBounds(given.Running)}
}

// bounds are a Bound with its resources in an order, so that each decision names the
// same.
type bounds struct {
	pods     int64 // below zero: any number
	requests []ceiling
}

type ceiling struct {
	resource string
	most     int64
}

func newBounds(b Bound) bounds {
	bs := bounds{pods: -1}
	if b.Pods != nil {
		bs.pods = max(0, *b.Pods)
	}
	for _, resource := range slices.Sorted(maps.Keys(b.Requests)) {
		bs.requests = append(bs.requests, ceiling{resource, max(0, b.Requests[resource])})
	}
	return bs
}

// exceeds tells whether so much in use, with one more pod that requests so much, is
// above the bounds, and where.
func (b *bounds) exceeds(used *usage, asks Amounts) (Held, bool) {
	if b.pods >= 0 && used.pods >= b.pods {
		return Held{Measured: float64(used.pods), Threshold: float64(b.pods)}, true
	}
	for _, c := range b.requests {
		if need := clamp(asks[c.resource]); need > 0 && used.amounts[c.resource] > c.most-need {
			return Held{
				Resource: c.resource, Measured: units(used.amounts[c.resource]), Threshold: units(c.most), Asks: units(need),
			}, true
		}
	}
	return Held{}, false
}

// units gives thousandths in units.
func units(amount int64) float64 { return float64(amount) / 1000 }

// touches appends what of the bounds concerns a pod that requests so much to the key
// of a class, and tells whether anything does.
func (b *bounds) touches(key []byte, asks Amounts) (_ []byte, touched bool) {
	if b.pods >= 0 {
		key, touched = append(key, 'p', 0), true
	}
	for _, c := range b.requests {
		if clamp(asks[c.resource]) > 0 {
			key, touched = append(append(append(key, 'r'), c.resource...), 0), true
		}
	}
	return key, touched
}

// left gives for each bound that concerns a pod which requests so much how many more
// such there may be, and how many such there may be at all.
func (b *bounds) left(used *usage, asks Amounts, tell func(more, most int64)) {
	if b.pods >= 0 {
		tell(max(0, b.pods-used.pods), b.pods)
	}
	for _, c := range b.requests {
		if need := clamp(asks[c.resource]); need > 0 {
			tell(max(0, c.most-used.amounts[c.resource])/need, c.most/need)
		}
	}
}

// usage is what some pods use.
type usage struct {
	pods    int64
	amounts Amounts
}

func (u *usage) add(asks Amounts) { u.change(asks, 1) }

// change adds a pod so many times that requests so much; below zero: takes it away.
func (u *usage) change(asks Amounts, by int64) {
	u.pods += by
	for resource, amount := range asks {
		if amount = clamp(amount); amount == 0 {
			continue
		}
		if u.amounts == nil {
			u.amounts = Amounts{}
		}
		if u.amounts[resource] += by * amount; u.amounts[resource] == 0 {
			delete(u.amounts, resource)
		}
	}
}

func (u *usage) copied() Usage { return Usage{Pods: u.pods, Requests: maps.Clone(u.amounts)} }

func (u *usage) reached(b *bounds) Reached {
	r := Reached{Pods: b.pods >= 0 && u.pods >= b.pods}
	for _, c := range b.requests {
		if r.Requests == nil {
			r.Requests = map[string]bool{}
		}
		r.Requests[c.resource] = u.amounts[c.resource] >= c.most
	}
	return r
}
