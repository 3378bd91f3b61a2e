package leases

import (
	"math/rand/v2"
	"time"
)

const leastRetry, mostRetry = time.Second, 15 * time.Second

// health is whether the API server does what it is asked. Reads and writes count apart, because a role or an admission
// policy may allow the one and not the other. The zero value: it does.
type health struct {
	read, write error
	since       time.Time // when the first request was sent that failed since all worked
	failures    int       // in a row
	retry       time.Time // no new request but renewals before
	// old: no pod has needed a slot since the last request, so the fault may be over.
	old bool
}

func (h *health) fault() error {
	if h.read != nil {
		return h.read
	}
	return h.write
}

// rest is called while no pod needs a slot. The next one that does finds out at once whether a fault lasts.
func (h *health) rest() {
	h.old, h.retry = h.fault() != nil, time.Time{}
}

func (h *health) note(line *error, err error, sent, now time.Time) {
	*line = err
	over := h.old && err == nil
	h.old = false
	switch {
	case h.fault() == nil, over:
		*h = health{}
	case err != nil:
		if h.since.IsZero() {
			h.since = sent
		}
		longest := min(mostRetry, leastRetry<<min(h.failures, 6))
		h.failures++
		h.retry = now.Add(longest/2 + rand.N(longest/2))
	}
}

// givesUp is when a policy with this patience stops to hold pods; the zero time: never.
func (h *health) givesUp(after time.Duration) time.Time {
	if h.since.IsZero() || h.old {
		return time.Time{}
	}
	return h.since.Add(after)
}
