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
	// remembered is how long a verdict is kept.
	remembered = time.Minute
	// trusted is how long a token that was granted does not count as unknown.
	trusted = 24 * time.Hour
	// mostRemembered bounds the tokens in each cache.
	mostRemembered = 256
	// strangersPerSecond and strangersAtOnce bound the reviews of unknown tokens.
	strangersPerSecond, strangersAtOnce = 10, 20
)

// errBusy is returned if there are too many unknown tokens.
var errBusy = errors.New("too many unknown tokens: try again later")

// Verdict is whether a token may read the metrics.
type Verdict int

// The verdicts.
const (
	// Nobody: the API server does not know the token.
	Nobody Verdict = iota
	// Denied: the token's user may not read the metrics.
	Denied
	// Granted: the token's user may read the metrics.
	Granted
)

// Review returns what the API server says of a token. It blocks until the API server answers or ctx ends. With an
// error, nothing is known of the token.
type Review func(ctx context.Context, token string) (Verdict, error)

// judge remembers verdicts. It is safe for concurrent use.
type judge struct {
	review    Review
	strangers *rate.Limiter

	// Both have the hashes of tokens as keys, so that no token stays in memory.
	verdicts *cache.LRUExpireCache // kept for remembered
	granted  *cache.LRUExpireCache // kept for trusted; unknown tokens do not displace them
}

func newJudge(review Review) *judge {
	return &judge{
		review: review, strangers: rate.NewLimiter(strangersPerSecond, strangersAtOnce),
		verdicts: cache.NewLRUExpireCache(mostRemembered), granted: cache.NewLRUExpireCache(mostRemembered),
	}
}

// verdict returns the verdict on a token. It blocks while the API server is asked. Unknown tokens may be refused with
// errBusy, but not a token that was granted recently.
func (j *judge) verdict(ctx context.Context, token string) (Verdict, error) {
	if token == "" {
		return Nobody, nil
	}
	hash := sha256.Sum256([]byte(token))
	if v, kept := j.verdicts.Get(hash); kept {
		return v.(Verdict), nil //nolint:errcheck // it holds only verdicts
	}
	if _, known := j.granted.Get(hash); !known && !j.strangers.Allow() {
		return Nobody, errBusy
	}
	verdict, err := j.review(ctx, token)
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
