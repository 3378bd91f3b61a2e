package logqueue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ended returns a context with which Run writes the queued entries, and returns.
func ended() context.Context {
	ctx, end := context.WithCancel(context.Background())
	end()
	return ctx
}

func TestLinesAreWrittenInOrderFromCopies(t *testing.T) {
	t.Parallel()
	var sink bytes.Buffer
	q := New(8, nil)
	w := q.Writer(&sink)
	line := make([]byte, 2)
	for i := range 5 {
		copy(line, fmt.Sprintf("%d\n", i))
		n, err := w.Write(line)
		require.NoError(t, err)
		assert.Equal(t, 2, n)
	}
	assert.Zero(t, sink.Len(), "nothing is written before Run")
	q.Run(ended())
	assert.Equal(t, "0\n1\n2\n3\n4\n", sink.String())
	assert.Zero(t, q.Dropped())
}

// stuck is a sink that blocks until it is freed.
type stuck struct {
	free  chan struct{}
	mu    sync.Mutex
	lines int
}

func (s *stuck) Write(line []byte) (int, error) {
	<-s.free
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lines++
	return len(line), nil
}

func (s *stuck) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lines
}

// A sink that blocks does not block the logger. Lost entries are counted, and reported once when the sink works again.
func TestASinkThatBlocksDoesNotBlockTheLogger(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const capacity, lines = 4, 20
		sink := &stuck{free: make(chan struct{})}
		var told []uint64
		q := New(capacity, func(dropped uint64) { told = append(told, dropped) })
		ctx, end := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() { defer close(done); q.Run(ctx) }()
		w := q.Writer(sink)
		_, err := w.Write([]byte("x"))
		require.NoError(t, err)
		synctest.Wait() // Run hangs in the sink
		for range lines {
			_, err := w.Write([]byte("x"))
			require.NoError(t, err)
		}
		const lost = lines - capacity
		assert.EqualValues(t, lost, q.Dropped())
		assert.Empty(t, told, "the loss could not be reported yet")

		close(sink.free)
		synctest.Wait()
		assert.Equal(t, 1+capacity, sink.count())
		assert.Equal(t, []uint64{lost}, told)

		// Entries lost within the next minute are reported at its end, at the latest when Run ends.
		q.Add(func() error { return errors.New("no longer there") })
		synctest.Wait()
		assert.Len(t, told, 1)
		time.Sleep(reportEvery)
		q.Add(func() error { return nil })
		synctest.Wait()
		assert.Equal(t, []uint64{lost, 1}, told)
		q.Add(func() error { return errors.New("no longer there") })
		end()
		<-done
		assert.Equal(t, []uint64{lost, 1, 1}, told)
	})
}
