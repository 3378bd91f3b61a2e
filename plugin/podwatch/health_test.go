package podwatch

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube/kubetest"
)

var errAway = errors.New("away")

// enough is longer than client-go's longest pause between two attempts.
const enough = 2 * time.Minute

func messages(log *logtest.Hook) []string {
	var out []string
	for _, entry := range log.AllEntries() {
		if entry.Level <= logrus.InfoLevel {
			out = append(out, fmt.Sprint(entry.Message, entry.Data))
		}
	}
	return out
}

func TestHealthListFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(webPod())
		var away atomic.Bool
		away.Store(true)
		api.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
			return away.Load(), nil, errAway
		})
		w, told, log, stop := run(t, api)
		defer stop()
		synctest.Wait()
		require.False(t, w.Healthy())
		time.Sleep(enough)
		require.False(t, w.Healthy())
		require.Len(t, messages(log), 1, "the fault is logged once")
		require.Contains(t, messages(log)[0], errAway.Error())

		away.Store(false)
		time.Sleep(enough)
		require.True(t, w.Healthy())
		require.Len(t, messages(log), 2, "the fault is logged, and its end")
		require.Equal(t, []string{"set ns/web uid-1 "}, told.take())
	})
}

// watches makes every watch of pods in the test itself. refuse decides about the next one.
func watches(api *fake.Clientset) (begun chan *watch.FakeWatcher, refuse *atomic.Pointer[error]) {
	begun, refuse = make(chan *watch.FakeWatcher, 100), &atomic.Pointer[error]{}
	api.PrependWatchReactor("pods", func(clienttesting.Action) (bool, watch.Interface, error) {
		if err := refuse.Load(); err != nil {
			return true, nil, *err
		}
		w := watch.NewFake()
		begun <- w
		return true, w, nil
	})
	return begun, refuse
}

// However a watch ends, Healthy is false from the refusal of the next one until one is connected.
func TestHealthWatchFails(t *testing.T) {
	t.Parallel()
	refused := error(apierrors.NewTooManyRequests("later", 1)) // client-go retries this without its error handler
	for name, end := range map[string]func(w *watch.FakeWatcher){
		"closed": func(w *watch.FakeWatcher) { w.Stop() },
		"error in a stream": func(w *watch.FakeWatcher) {
			w.Error(&apierrors.NewResourceExpired("too old").ErrStatus)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				api := fake.NewClientset(webPod())
				begun, refuse := watches(api)
				w, _, log, stop := run(t, api)
				defer stop()
				synctest.Wait()
				require.True(t, w.Healthy())

				time.Sleep(enough)
				refuse.Store(&refused)
				end(<-begun)
				time.Sleep(enough)
				require.False(t, w.Healthy())
				require.Len(t, messages(log), 1)
				require.Contains(t, messages(log)[0], "later")
				require.Empty(t, begun)

				refuse.Store(nil)
				time.Sleep(enough)
				require.True(t, w.Healthy())
			})
		})
	}
}

func TestHealthBeforeAndAfter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		logger, _ := logtest.NewNullLogger()
		require.False(t, New(Options{Client: kubetest.Of(fake.NewClientset()), NodeName: "node-a", Log: logger}).Healthy())

		w, _, log, stop := run(t, fake.NewClientset(webPod()))
		synctest.Wait()
		require.True(t, w.Healthy())
		stop()
		require.False(t, w.Healthy())
		require.Empty(t, messages(log), "a stop is no failure")
		_, ok := w.Get("uid-1")
		require.True(t, ok, "known pods stay known")
	})
}
