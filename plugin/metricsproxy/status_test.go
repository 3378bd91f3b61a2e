package metricsproxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// reviews returns a fixed status for each token, and counts the questions. A token without a status gives an error.
type reviews struct {
	statuses map[string]int
	asked    int
}

var errAway = errors.New("no API server")

func (r *reviews) Review(_ context.Context, token string, _ Right) (int, error) {
	r.asked++
	v, ok := r.statuses[token]
	if !ok {
		return 0, errAway
	}
	return v, nil
}

func (r *reviews) proxy() *proxy { return newProxy(Options{Review: r.Review}, nil) }

func TestWhatIsKnownOfATokenCountsForAMinute(t *testing.T) {
	t.Parallel()
	for token, want := range map[string]int{"reader": http.StatusOK, "stranger": http.StatusForbidden, "nonsense": http.StatusUnauthorized} {
		synctest.Test(t, func(t *testing.T) {
			r := &reviews{statuses: map[string]int{token: want}}
			p := r.proxy()
			for _, later := range []time.Duration{0, remembered} {
				time.Sleep(later)
				got, err := p.status(t.Context(), token, Right{})
				require.NoError(t, err)
				assert.Equal(t, want, got, token)
			}
			assert.Equal(t, 1, r.asked)
			r.statuses[token] = http.StatusForbidden
			time.Sleep(time.Nanosecond)
			got, err := p.status(t.Context(), token, Right{})
			require.NoError(t, err)
			assert.Equal(t, http.StatusForbidden, got, "a granted right may be taken away")
		})
	}
}

func TestWithoutATokenTheAPIServerIsNotAsked(t *testing.T) {
	t.Parallel()
	r := &reviews{}
	got, err := r.proxy().status(t.Context(), "", Right{})
	require.NoError(t, err)
	assert.Equal(t, http.StatusUnauthorized, got)
	assert.Zero(t, r.asked)
}

func TestAFailedReviewIsNotRemembered(t *testing.T) {
	t.Parallel()
	r := &reviews{statuses: map[string]int{}}
	p := r.proxy()
	_, err := p.status(t.Context(), "reader", Right{})
	require.ErrorIs(t, err, errAway)
	r.statuses["reader"] = http.StatusOK
	got, err := p.status(t.Context(), "reader", Right{})
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, got)
}

func TestTheNumberOfRememberedTokensHasABound(t *testing.T) {
	t.Parallel()
	r := &reviews{statuses: map[string]int{}}
	p := r.proxy()
	for i := range mostRemembered * 3 {
		token := fmt.Sprint("guess ", i)
		r.statuses[token] = http.StatusForbidden
		_, err := p.status(t.Context(), token, Right{})
		require.NoError(t, err)
		require.LessOrEqual(t, len(p.statuses.Keys()), mostRemembered)
	}
}

// The log is called without a lock held, and at most once a minute.
func TestAnErrorIsLoggedOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log, logged := logtest.NewNullLogger()
		p := newProxy(Options{Log: log}, nil)
		var calls sync.WaitGroup
		for range 8 {
			calls.Go(func() { p.complain(errAway) })
		}
		calls.Wait()
		assert.Len(t, logged.AllEntries(), 1)
		time.Sleep(complaints)
		p.complain(errAway)
		assert.Len(t, logged.AllEntries(), 2)
	})
}
