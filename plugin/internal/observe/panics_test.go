package observe

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestAPartThatPanicsRunsAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o := New(Options{Log: discard(), Events: &Recorder{}, Nodes: func() int { return 1 }})
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

func TestAPartThatPanicsEndsWithTheDaemon(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	o := New(Options{Log: discard(), Events: &Recorder{}, Nodes: func() int { return 1 }})
	require.NoError(t, o.Supervised(ctx, "part", func(context.Context) error {
		cancel()
		panic("broken")
	}))
}
