package metricsproxy

import (
	"context"
	"crypto/sha256"
	"errors"
	"time"

	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// remembered is how long it counts what the API server said of a token.
	remembered = time.Minute
	// trusted is for how long a token that was granted last is none of a stranger.
	trusted = 24 * time.Hour
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

	// Both go by the token's hash: no token stays in memory.
	verdicts *cache.LRUExpireCache // those that count
	granted  *cache.LRUExpireCache // whatever the strangers send, it keeps the tokens that were granted last
}

func newJudge(r Reviewer) *judge {
	return &judge{
		reviewer: r, strangers: rate.NewLimiter(strangersPerSecond, strangersAtOnce),
		verdicts: cache.NewLRUExpireCache(mostRemembered), granted: cache.NewLRUExpireCache(mostRemembered),
	}
}

// verdict returns that of a token. It blocks while the reviewer is asked, which a token that was granted last
// may have done however many others are sent.
func (j *judge) verdict(ctx context.Context, token string) (Verdict, error) {
	if token == "" {
		return Nobody, nil
	}
	hash := sha256.Sum256([]byte(token))
	if said, counts := j.verdicts.Get(hash); counts {
		return said.(Verdict), nil //nolint:errcheck // nothing else is in it
	}
	if _, known := j.granted.Get(hash); !known && !j.strangers.Allow() {
		return Nobody, errBusy
	}
	verdict, err := j.reviewer.Review(ctx, token)
	if err != nil {
		return Nobody, err
	}
	j.verdicts.Add(hash, verdict, remembered)
	j.granted.Remove(hash)
	if verdict == Granted {
		j.granted.Add(hash, nil, trusted)
	}
	return verdict, nil
}
