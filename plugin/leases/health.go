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
}

func (h *health) fault() error {
	if h.read != nil {
		return h.read
	}
	return h.write
}

func (h *health) note(line *error, err error, sent, now time.Time) {
	*line = err
	switch {
	case h.fault() == nil:
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
	if h.since.IsZero() {
		return time.Time{}
	}
	return h.since.Add(after)
}
