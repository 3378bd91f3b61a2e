package observe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPartThatPanicsRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Options{Log: discard(), Events: NoEvents{}, Nodes: func() int { return 1 }})
		runs := 0
		done := errors.New("done")
		begin := time.Now()
		err := o.Supervised(t.Context(), "part", func(context.Context) error {
			if runs++; runs < 4 {
				panic("broken")
			}
			return done
		})
		require.ErrorIs(t, err, done)
		assert.Equal(t, 4, runs)
		assert.Equal(t, 3*restartAfter, time.Since(begin))
	})
}

func TestAPanicAboutAPodNamesThePod(t *testing.T) {
	t.Parallel()
	log, logged := logtest.NewNullLogger()
	o := New(Options{Log: log, Events: NoEvents{}, Nodes: func() int { return 1 }})
	require.NotPanics(t, func() {
		defer o.CaughtPod("review", "u1", "ns/web")
		panic("broken")
	})
	said := logged.LastEntry()
	assert.Equal(t, "caught a panic in review for pod ns/web, the daemon goes on: broken", said.Message)
	for field, want := range map[string]any{
		"pod_namespace": "ns", "pod_name": "web", "pod_uid": "u1", "part": "review", "panic": "broken",
	} {
		assert.Equal(t, want, said.Data[field], field)
	}
	assert.InDelta(t, 1, testutil.ToFloat64(o.metrics.panics.WithLabelValues("review")), 0)
}

func TestAPartThatPanicsEndsWithTheDaemon(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := New(Options{Log: discard(), Events: NoEvents{}, Nodes: func() int { return 1 }})
	require.NoError(t, o.Supervised(ctx, "part", func(context.Context) error {
		cancel()
		panic("broken")
	}))
}
