package leases

import (
	"cmp"
	"math/rand/v2"
	"time"
)

const leastRetry, mostRetry = time.Second, 15 * time.Second

// health records whether requests to the API server succeed. Those that read, take slots, and renew or delete them are
// recorded separately, because a role, a quota or an admission policy may allow one and not the other. The zero value means
// that they succeed.
type health struct {
	read, take, write error
	since             time.Time // when the first of the failed requests was sent
	failures          int       // in a row
	retry             time.Time // until then only renewals are sent
}

func (h *health) fault() error {
	return cmp.Or(h.read, h.take, h.write)
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

// givesUp returns when a policy with this OpenAfter stops holding pods. Zero means never.
func (h *health) givesUp(after time.Duration) time.Time {
	if h.since.IsZero() {
		return time.Time{}
	}
	return h.since.Add(after)
}
