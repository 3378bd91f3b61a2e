package metricsproxy

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reviews returns a fixed verdict for each token, and counts the questions. A token without a verdict gives an error.
type reviews struct {
	verdicts map[string]Verdict
	asked    int
}

var errAway = errors.New("no API server")

func (r *reviews) Review(_ context.Context, token string) (Verdict, error) {
	r.asked++
	v, ok := r.verdicts[token]
	if !ok {
		return Nobody, errAway
	}
	return v, nil
}

func TestAVerdictOnATokenCountsForAMinute(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]Verdict{"reader": Granted, "stranger": Denied, "nonsense": Nobody} {
		synctest.Test(t, func(t *testing.T) {
			r := &reviews{verdicts: map[string]Verdict{token: want}}
			j := newJudge(r.Review)
			for _, later := range []time.Duration{0, remembered} {
				time.Sleep(later)
				got, err := j.verdict(t.Context(), token)
				require.NoError(t, err)
				assert.Equal(t, want, got, token)
			}
			assert.Equal(t, 1, r.asked)
			r.verdicts[token] = Denied
			time.Sleep(time.Nanosecond)
			got, err := j.verdict(t.Context(), token)
			require.NoError(t, err)
			assert.Equal(t, Denied, got, "a granted right may be taken away")
		})
	}
}

func TestWithoutATokenTheAPIServerIsNotAsked(t *testing.T) {
	t.Parallel()
	r := &reviews{}
	got, err := newJudge(r.Review).verdict(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, Nobody, got)
	assert.Zero(t, r.asked)
}

func TestAFailedReviewIsNotRemembered(t *testing.T) {
	t.Parallel()
	r := &reviews{verdicts: map[string]Verdict{}}
	j := newJudge(r.Review)
	got, err := j.verdict(t.Context(), "reader")
	require.ErrorIs(t, err, errAway)
	assert.Equal(t, Nobody, got)
	r.verdicts["reader"] = Granted
	got, err = j.verdict(t.Context(), "reader")
	require.NoError(t, err)
	assert.Equal(t, Granted, got)
}

func TestTheNumberOfRememberedTokensHasABound(t *testing.T) {
	t.Parallel()
	r := &reviews{verdicts: map[string]Verdict{}}
	j := newJudge(r.Review)
	for i := range mostRemembered * 3 {
		token := fmt.Sprint("guess ", i)
		r.verdicts[token] = Denied
		_, err := j.verdict(t.Context(), token)
		require.NoError(t, err)
		require.LessOrEqual(t, len(j.verdicts.Keys()), mostRemembered)
	}
}
