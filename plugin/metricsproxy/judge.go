package metricsproxy

import (
	"context"
	"crypto/sha256"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// remembered is how long a verdict is kept.
	remembered = time.Minute
	// mostRemembered bounds the number of these verdicts.
	mostRemembered = 256
)

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
	review   Review
	verdicts *cache.LRUExpireCache // by the hash of the token, so that no token stays in memory
}

func newJudge(review Review) *judge {
	return &judge{review: review, verdicts: cache.NewLRUExpireCache(mostRemembered)}
}

// verdict returns the verdict on a token. It blocks while the API server is asked.
func (j *judge) verdict(ctx context.Context, token string) (Verdict, error) {
	if token == "" {
		return Nobody, nil
	}
	hash := sha256.Sum256([]byte(token))
	if v, kept := j.verdicts.Get(hash); kept {
		return v.(Verdict), nil //nolint:errcheck // it holds only verdicts
	}
	verdict, err := j.review(ctx, token)
	if err != nil {
		return Nobody, err
	}
	j.verdicts.Add(hash, verdict, remembered)
	return verdict, nil
}
