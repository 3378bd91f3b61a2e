package informer

import (
	"context"
	"errors"
	"testing"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// served is what an API server answers now, and what a Reach says of it.
type served struct {
	t       *testing.T
	err     error
	refused int
	lw      *cache.ListWatch
	said    *logtest.Hook
}

func newServed(t *testing.T) *served {
	log, said := logtest.NewNullLogger()
	s := &served{t: t, said: said}
	reach := &Reach{What: "things", Right: ", for want of a right", Meanwhile: "nothing is known", Log: log, Refused: func() { s.refused++ }}
	s.lw = reach.observed(cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) { return nil, s.err },
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewEmptyWatch(), s.err
		},
	})
	return s
}

// watches asks for a watch, with the initial list as a stream or without, while the API
// server answers so, and gives what was logged.
func (s *served) watches(ctx context.Context, answer error, stream bool) (lines []string) {
	s.t.Helper()
	s.err = answer
	o := metav1.ListOptions{}
	if stream {
		o.SendInitialEvents = &stream
	}
	_, err := s.lw.WatchFuncWithContext(ctx, o)
	require.ErrorIs(s.t, err, answer)
	for _, entry := range s.said.AllEntries() {
		lines = append(lines, entry.Message)
	}
	s.said.Reset()
	return lines
}

var thing = schema.GroupResource{Resource: "things"}

func TestReachSaysOnceWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	forbidden := apierrors.NewForbidden(thing, "", nil)
	assert.Empty(t, s.watches(t.Context(), nil, false), "all is well from the beginning")
	assert.Equal(t, []string{"cannot watch things, for want of a right: nothing is known; trying again until it works"}, s.watches(t.Context(), forbidden, false))
	assert.Empty(t, s.watches(t.Context(), forbidden, false))
	assert.Equal(t, 2, s.refused)
	assert.Equal(t, []string{"watching things again"}, s.watches(t.Context(), nil, false))
	assert.Equal(t, []string{"cannot watch things: nothing is known; trying again until it works"}, s.watches(t.Context(), errors.New("away"), false))
	assert.Equal(t, 2, s.refused, "who is away has not answered")
}

// What is part of every watch is no fault.
func TestReachSaysNothingOfWhatIsInOrder(t *testing.T) {
	t.Parallel()
	s := newServed(t)
	invalid := apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	assert.Empty(t, s.watches(t.Context(), invalid, true), "an older API server cannot stream the list: client-go asks for it")
	assert.Empty(t, s.watches(t.Context(), apierrors.NewResourceExpired("too old"), false))
	ended, end := context.WithCancel(t.Context())
	end()
	assert.Empty(t, s.watches(ended, errors.New("away"), false), "the daemon ends")
	assert.Zero(t, s.refused)
	assert.Len(t, s.watches(t.Context(), invalid, false), 1)
}
