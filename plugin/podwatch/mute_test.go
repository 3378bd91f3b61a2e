package podwatch

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
)

// A watch that is open and tells nothing is listed anew, and is healthy again after that; no more often than once in
// five minutes.
func TestAMuteWatchIsListedAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset(webPod())
		opened, _ := watches(api) // of which no event comes
		w, told, log, stop := run(t, api)
		defer stop()
		synctest.Wait()
		require.True(t, w.Healthy())
		told.take()
		listed := w.Heard("uid-2")
		require.Equal(t, time.Now(), listed, "the list told that there is no such pod")

		time.Sleep(time.Minute)
		fakes{t, api}.create(webPod(named("other"), uid("", "uid-2")))
		require.Empty(t, told.take())
		require.Equal(t, listed, w.Heard("uid-2"))
		w.ListAnew(time.Now(), "a container runs")
		require.ErrorContains(t, w.Err(), "a container runs")
		require.Len(t, messages(log), 1)
		(<-opened).Stop() // it ends as every watch does after some minutes, and the next is as mute
		synctest.Wait()
		require.Empty(t, told.take())
		require.False(t, w.Healthy())
		time.Sleep(askWithin + time.Second)
		require.Equal(t, []string{"set ns/other uid-2 "}, told.take())
		require.NoError(t, w.Err())
		require.True(t, w.Heard("uid-2").After(listed))
		require.Len(t, messages(log), 2)

		w.ListAnew(time.Now(), "a container runs")
		require.NoError(t, w.Err(), "too soon")
		time.Sleep(askEvery + askWithin)
		w.ListAnew(time.Now(), "a container runs")
		require.False(t, w.Healthy())
		time.Sleep(askWithin + time.Second)
		require.NoError(t, w.Err())
	})
}

func TestAWatchSaysWhenItHeardOfAPod(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := fake.NewClientset()
		opened, _ := watches(api)
		w, _, _, stop := run(t, api)
		defer stop()
		synctest.Wait()
		time.Sleep(time.Minute)
		pod := webPod()
		pod.ResourceVersion = "7"
		(<-opened).Add(pod)
		synctest.Wait()
		require.Equal(t, time.Now(), w.Heard("uid-1"))
	})
}

// An API server whose memory is as old as the watch is asked for its newest state, in both ways of listing.
func TestAMuteWatchIsListedFromTheNewestState(t *testing.T) {
	t.Parallel()
	yes, h := true, newHealth(nil)
	list := metav1.ListOptions{ResourceVersion: "7", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan}
	streamed, goesOn := list, metav1.ListOptions{Watch: true, ResourceVersion: "7"}
	streamed.Watch, streamed.SendInitialEvents = true, &yes
	h.mute.newest(&list)
	require.Equal(t, "7", list.ResourceVersion, "it is not mute")
	require.True(t, h.mute.begins(time.Now()))
	h.mute.newest(&list)
	require.Zero(t, list)
	h.mute.newest(&streamed)
	require.Empty(t, streamed.ResourceVersion)
	require.NotEmpty(t, streamed.ResourceVersionMatch, "a streamed list needs it")
	h.mute.newest(&goesOn)
	require.Equal(t, "7", goesOn.ResourceVersion)
}

// The API server streams the list, or, an older one, gives it at once.
func TestAMuteWatchOfARealServerIsListedAnew(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		api := newAPIServer(t)
		api.plainLists = plain
		w, _, _, stop := run(t, api.client())
		t.Cleanup(stop)
		eventually(t, "healthy", w.Healthy)
		api.loses(webPod())
		w.ListAnew(time.Now(), "a container runs")
		require.False(t, w.Healthy())
		w.health.mute.ask() // the random time is over
		eventually(t, "healthy again", w.Healthy)
		eventually(t, "the pod that was lost is known", func() bool {
			_, known := w.Get("uid-1")
			return known
		})
	}
}
