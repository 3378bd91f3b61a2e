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

// reviews says the same of each token, and counts how often it was asked. What it has no word for is an error.
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

func TestWhatWasSaidOfATokenCountsForAMinute(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]Verdict{"reader": Granted, "stranger": Denied, "nonsense": Nobody} {
		synctest.Test(t, func(t *testing.T) {
			r := &reviews{verdicts: map[string]Verdict{token: want}}
			j := newJudge(r)
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
			assert.Equal(t, Denied, got, "what it was allowed may be taken away")
		})
	}
}

func TestWithoutATokenNobodyIsAsked(t *testing.T) {
	t.Parallel()
	r := &reviews{}
	got, err := newJudge(r).verdict(t.Context(), "")
	require.NoError(t, err)
	assert.Equal(t, Nobody, got)
	assert.Zero(t, r.asked)
}

func TestWhatCannotBeAskedIsNotRemembered(t *testing.T) {
	t.Parallel()
	r := &reviews{verdicts: map[string]Verdict{}}
	j := newJudge(r)
	got, err := j.verdict(t.Context(), "reader")
	require.ErrorIs(t, err, errAway)
	assert.Equal(t, Nobody, got)
	r.verdicts["reader"] = Granted
	got, err = j.verdict(t.Context(), "reader")
	require.NoError(t, err)
	assert.Equal(t, Granted, got)
}

// However many send tokens that nobody knows, the API server is asked about few of them, and one that was granted before
// is asked about as ever.
func TestStrangersKeepNobodyFromReading(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reviews{verdicts: map[string]Verdict{"reader": Granted}}
		j := newJudge(r)
		_, err := j.verdict(t.Context(), "reader")
		require.NoError(t, err)
		time.Sleep(remembered + 1)
		busy := 0
		for i := range 1000 {
			token := fmt.Sprint("guess ", i)
			r.verdicts[token] = Nobody
			if _, err := j.verdict(t.Context(), token); errors.Is(err, errBusy) {
				busy++
			}
		}
		assert.Equal(t, 1000-strangersAtOnce, busy)
		got, err := j.verdict(t.Context(), "reader")
		require.NoError(t, err)
		assert.Equal(t, Granted, got)
		assert.Equal(t, 1+strangersAtOnce+1, r.asked)
	})
}

// Those who were refused make no room of those who were granted, nor are more remembered than there is room for.
func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := &reviews{verdicts: map[string]Verdict{"reader": Granted}}
		j := newJudge(r)
		_, err := j.verdict(t.Context(), "reader")
		require.NoError(t, err)
		for i := range mostRemembered * 3 {
			time.Sleep(time.Second / strangersPerSecond)
			token := fmt.Sprint("guess ", i)
			r.verdicts[token] = Denied
			_, err := j.verdict(t.Context(), token)
			require.NoError(t, err)
			require.LessOrEqual(t, len(j.verdicts.Keys()), mostRemembered)
		}
		for j.strangers.Allow() {
		}
		got, err := j.verdict(t.Context(), "reader")
		require.NoError(t, err)
		assert.Equal(t, Granted, got)
		for i := range mostRemembered * 3 {
			time.Sleep(time.Second / strangersPerSecond)
			token := fmt.Sprint("another ", i)
			r.verdicts[token] = Granted
			_, err := j.verdict(t.Context(), token)
			require.NoError(t, err)
			require.LessOrEqual(t, len(j.granted.Keys()), mostRemembered)
		}
	})
}
