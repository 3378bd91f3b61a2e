package metricsproxy

import (
	"context"
	"errors"
	"fmt"
	"testing"
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
	r := &reviews{verdicts: map[string]Verdict{"reader": Granted, "stranger": Denied, "nonsense": Nobody}}
	j, now := newJudge(r), time.Now()
	for token, want := range r.verdicts {
		asked := r.asked
		for _, later := range []time.Duration{0, remembered - 1} {
			got, err := j.verdict(t.Context(), token, now.Add(later))
			require.NoError(t, err)
			assert.Equal(t, want, got, token)
		}
		assert.Equal(t, asked+1, r.asked)
	}
	r.verdicts["reader"] = Denied
	got, err := j.verdict(t.Context(), "reader", now.Add(remembered))
	require.NoError(t, err)
	assert.Equal(t, Denied, got, "the right was taken away")
}

func TestWithoutATokenNobodyIsAsked(t *testing.T) {
	t.Parallel()
	r := &reviews{}
	got, err := newJudge(r).verdict(t.Context(), "", time.Now())
	require.NoError(t, err)
	assert.Equal(t, Nobody, got)
	assert.Zero(t, r.asked)
}

func TestWhatCannotBeAskedIsNotRemembered(t *testing.T) {
	t.Parallel()
	r := &reviews{verdicts: map[string]Verdict{}}
	j, now := newJudge(r), time.Now()
	got, err := j.verdict(t.Context(), "reader", now)
	require.ErrorIs(t, err, errAway)
	assert.Equal(t, Nobody, got)
	r.verdicts["reader"] = Granted
	got, err = j.verdict(t.Context(), "reader", now)
	require.NoError(t, err)
	assert.Equal(t, Granted, got)
}

// However many send tokens that nobody knows, the API server is asked about few of them, and one that was granted before
// is asked about as ever.
func TestStrangersKeepNobodyFromReading(t *testing.T) {
	t.Parallel()
	r := &reviews{verdicts: map[string]Verdict{"reader": Granted}}
	j, now := newJudge(r), time.Now()
	_, err := j.verdict(t.Context(), "reader", now)
	require.NoError(t, err)
	later, busy := now.Add(remembered), 0
	for i := range 1000 {
		token := fmt.Sprint("guess ", i)
		r.verdicts[token] = Nobody
		if _, err := j.verdict(t.Context(), token, later); errors.Is(err, errBusy) {
			busy++
		}
	}
	assert.Equal(t, 1000-strangersAtOnce, busy)
	got, err := j.verdict(t.Context(), "reader", later)
	require.NoError(t, err)
	assert.Equal(t, Granted, got)
	assert.Equal(t, 1+strangersAtOnce+1, r.asked)
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	j, now := newJudge(&reviews{}), time.Now()
	key := func(i int) (hash [32]byte) { hash[0], hash[1] = byte(i), byte(i>>8); return hash }
	j.remember(key(0), said{Granted, now.Add(remembered)}, now)
	for i := range mostRemembered * 3 {
		j.remember(key(i+1), said{Denied, now.Add(remembered)}, now)
		require.LessOrEqual(t, len(j.known), mostRemembered)
	}
	assert.Equal(t, Granted, j.remembers(key(0)).verdict, "those who were refused make room first")
	for i := range mostRemembered * 3 {
		j.remember(key(i+1), said{Granted, now.Add(remembered)}, now)
		require.LessOrEqual(t, len(j.known), mostRemembered)
	}
}
