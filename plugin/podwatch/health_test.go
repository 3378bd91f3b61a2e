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

// The API server closes each watch after some minutes. This is no failure.
func TestHealthRegularEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset()
		begun, _ := watches(api)
		w, told, log, stop := run(t, api)
		defer stop()
		for range 3 {
			synctest.Wait()
			time.Sleep(5 * time.Minute)
			(<-begun).Stop()
			require.True(t, w.Healthy())
		}
		synctest.Wait()
		require.True(t, w.Healthy())
		require.Empty(t, messages(log))
		(<-begun).Add(webPod())
		synctest.Wait()
		require.Equal(t, []string{"set ns/web uid-1 "}, told.take())
	})
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

// A connected watch that reports nothing leads to a new list. After that it is healthy again. This happens at most once
// in five minutes.
func TestAMuteWatchIsListedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(webPod())
		begun, _ := watches(api) // no event comes from these
		w, told, log, stop := run(t, api)
		defer stop()
		synctest.Wait()
		require.True(t, w.Healthy())
		told.take()
		listed := w.LastReport("uid-2")
		require.Equal(t, time.Now(), listed, "the list says that the pod does not exist")

		time.Sleep(time.Minute)
		fakes{t, api}.create(webPod(named("other"), uid("", "uid-2")))
		require.Empty(t, told.take())
		require.Equal(t, listed, w.LastReport("uid-2"))
		w.ListAnew(time.Now(), "a container runs")
		require.False(t, w.Healthy())
		require.Len(t, messages(log), 1)
		require.Contains(t, messages(log)[0], "a container runs")
		(<-begun).Stop() // as every watch does after some minutes; the next one is as mute
		synctest.Wait()
		require.Empty(t, told.take())
		require.False(t, w.Healthy())
		time.Sleep(askWithin + time.Second)
		require.Equal(t, []string{"set ns/other uid-2 "}, told.take())
		require.True(t, w.Healthy())
		require.True(t, w.LastReport("uid-2").After(listed))
		require.Len(t, messages(log), 2)

		w.ListAnew(time.Now(), "a container runs")
		require.True(t, w.Healthy(), "it is too soon for another list")
		time.Sleep(askEvery + askWithin)
		w.ListAnew(time.Now(), "a container runs")
		require.False(t, w.Healthy())
		time.Sleep(askWithin + time.Second)
		require.True(t, w.Healthy())
	})
}

func TestAWatchRemembersItsLastReportOfAPod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset()
		begun, _ := watches(api)
		w, _, _, stop := run(t, api)
		defer stop()
		synctest.Wait()
		time.Sleep(time.Minute)
		pod := webPod()
		pod.ResourceVersion = "7"
		(<-begun).Add(pod)
		synctest.Wait()
		require.Equal(t, time.Now(), w.LastReport("uid-1"))
	})
}

// The API server streams the list. An older one gives it at once.
func TestAMuteWatchOfARealServerIsListedAgain(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		api := newAPIServer(t)
		api.plainLists = plain
		w, _, _, stop := run(t, api.client())
		t.Cleanup(stop)
		eventually(t, "healthy", w.Healthy)
		api.createUnreported(webPod())
		w.ListAnew(time.Now(), "a container runs")
		require.False(t, w.Healthy())
		w.informer.Relist() // the random delay is over
		eventually(t, "the watch is healthy again", w.Healthy)
		eventually(t, "the pod that was lost is known", func() bool {
			_, known := w.Get("uid-1")
			return known
		})
	}
}
