package metricsproxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"sync"
	"time"

	"golang.org/x/time/rate"
)

const (
	// remembered is how long it counts what the API server said of a token.
	remembered = time.Minute
	// mostRemembered bounds the tokens that are remembered.
	mostRemembered = 256
	// strangersPerSecond and strangersAtOnce bound the reviews of tokens that were not granted before.
	strangersPerSecond, strangersAtOnce = 10, 20
)

// errBusy: too many unknown tokens were sent.
var errBusy = errors.New("too many unknown tokens: try again later")

// Verdict is what the API server says of a token.
type Verdict int

// The verdicts.
const (
	// Nobody: the token belongs to nobody.
	Nobody Verdict = iota
	// Denied: the token's user may not read the metrics.
	Denied
	// Granted: the token's user may read the metrics.
	Granted
)

// Reviewer says who may read the metrics. It is safe for concurrent use.
type Reviewer interface {
	// Review returns what the API server says of a token. It blocks until that answers or ctx ends; with an error
	// nothing is known of the token.
	Review(ctx context.Context, token string) (Verdict, error)
}

// judge remembers what a reviewer said. It is safe for concurrent use.
type judge struct {
	reviewer  Reviewer
	strangers *rate.Limiter

	mu    sync.Mutex
	known map[[sha256.Size]byte]said // by the token's hash: no token stays in memory
}

// said is a verdict, and until when it counts. Of a token that was granted, it is kept for longer.
type said struct {
	verdict Verdict
	until   time.Time
}

func newJudge(r Reviewer) *judge {
	return &judge{
		reviewer: r, strangers: rate.NewLimiter(strangersPerSecond, strangersAtOnce),
		known: map[[sha256.Size]byte]said{},
	}
}

// verdict returns that of a token at a time. It blocks while the reviewer is asked, which a token that was granted once
// may have done however many others are sent.
func (j *judge) verdict(ctx context.Context, token string, now time.Time) (Verdict, error) {
	if token == "" {
		return Nobody, nil
	}
	hash := sha256.Sum256([]byte(token))
	before := j.remembers(hash)
	if now.Before(before.until) {
		return before.verdict, nil
	}
	if before.verdict != Granted && !j.strangers.AllowN(now, 1) {
		return Nobody, errBusy
	}
	verdict, err := j.reviewer.Review(ctx, token)
	if err != nil {
		return Nobody, err
	}
	j.remember(hash, said{verdict, now.Add(remembered)}, now)
	return verdict, nil
}

func (j *judge) remembers(hash [sha256.Size]byte) said {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.known[hash]
}

// remember makes room by what helps least: first what is over, then what was refused, then all.
func (j *judge) remember(hash [sha256.Size]byte, s said, now time.Time) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, dispensable := range []func(said) bool{
		func(s said) bool { return !now.Before(s.until) },
		func(s said) bool { return s.verdict != Granted },
		func(said) bool { return true },
	} {
		if len(j.known) < mostRemembered {
			break
		}
		for other, s := range j.known {
			if dispensable(s) {
				delete(j.known, other)
			}
		}
	}
	j.known[hash] = s
}
