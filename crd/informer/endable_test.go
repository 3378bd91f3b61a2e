package informer

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errRefused = fmt.Errorf("dial: %w", syscall.ECONNREFUSED)

// away is an API server that refuses every connection, and tells of each.
func away(asked chan<- string) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			asked <- "list"
			return nil, errRefused
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			asked <- "watch"
			return nil, errRefused
		},
	}
}

func TestAnInformerEndsAtOnceWhileTheServerIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := make(chan string)
		lw := cache.ToListWatcherWithWatchListSemantics(Endable(away(asked)), nil)
		informer := cache.NewSharedIndexInformer(lw, &corev1.Pod{}, 0, cache.Indexers{})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			informer.RunWithContext(ctx)
		}()
		for range 4 { // it tries on
			require.Equal(t, "watch", <-asked)
			require.Equal(t, "list", <-asked)
		}
		synctest.Wait()
		told := time.Now()
		cancel()
		<-ended
		assert.Zero(t, time.Since(told))
	})
}

func TestOnlyTheFirstObjectsAreListedWhereAConnectionIsRefused(t *testing.T) {
	t.Parallel()
	yes, lw := true, Endable(away(make(chan string, 2)))
	_, err := lw.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &yes})
	require.EqualError(t, err, errRefused.Error())
	require.NotErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = lw.WatchWithContext(t.Context(), metav1.ListOptions{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "the watch is tried again from where it was")
}
