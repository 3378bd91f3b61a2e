package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errRefused = fmt.Errorf("dial: %w", syscall.ECONNREFUSED)

// server is an API server with pods.
type server struct {
	unable  bool // it cannot stream the list
	endless bool // a streamed list does not end by itself

	mu      sync.Mutex
	pods    []corev1.Pod
	err     error // of each request; nil if it answers
	newest  int   // the version of the newest object
	asked   []metav1.ListOptions
	watches []*watch.FakeWatcher
}

// has sets the pods, and the error of each request.
func (s *server) has(err error, pods ...corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err, s.pods = err, pods
}

// faultLocked notes a request, and returns its error.
func (s *server) faultLocked(o metav1.ListOptions) error {
	s.asked = append(s.asked, o)
	return s.err
}

func (s *server) List(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.faultLocked(o); err != nil {
		return nil, err
	}
	if version, _ := strconv.Atoi(o.ResourceVersion); version > s.newest {
		err := apierrors.NewTimeoutError("Too large resource version", 1)
		err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: metav1.CauseTypeResourceVersionTooLarge}}
		return nil, err
	}
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(s.newest)}, Items: append([]corev1.Pod{}, s.pods...)}, nil
}

func (s *server) Watch(_ context.Context, o metav1.ListOptions) (watch.Interface, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.faultLocked(o); err != nil {
		return nil, err
	}
	if s.unable && o.SendInitialEvents != nil {
		return nil, apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil)
	}
	w := watch.NewFakeWithChanSize(20, false)
	if o.SendInitialEvents != nil {
		for i := range s.pods {
			w.Add(s.pods[i].DeepCopy())
		}
		if !s.endless {
			w.Action(watch.Bookmark, initialEnd(s.newest))
		}
	}
	s.watches = append(s.watches, w)
	return w, nil
}

// initialEnd is the object of the event that ends a streamed list.
func initialEnd(version int) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: strconv.Itoa(version), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

// lists returns the versions from which the last requests listed, and forgets them.
func (s *server) lists() (from []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.asked {
		if o.SendInitialEvents == nil && o.TimeoutSeconds == nil {
			from = append(from, "list "+o.ResourceVersion)
		} else if o.SendInitialEvents != nil {
			from = append(from, "stream "+o.ResourceVersion)
		}
	}
	s.asked = nil
	return from
}

func pod(name, uid, version string) corev1.Pod {
	return corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(uid), ResourceVersion: version},
		Spec:       corev1.PodSpec{NodeName: "dropped"},
	}
}

// bed is an informer of a server, with what it reported and logged.
type bed struct {
	*Informer[*corev1.Pod]
	server  *server
	told    []string
	refused atomic.Int32
	log     *logtest.Hook

	completed []int // how many changes were told when Complete was called
}

// with runs an informer in a bubble until check returns.
func with(t *testing.T, s *server, check func(t *testing.T, b *bed)) {
	t.Helper()
	s.newest = 9
	synctest.Test(t, func(t *testing.T) {
		log, said := logtest.NewNullLogger()
		b := &bed{server: s, log: said}
		b.Informer = New(kube.Whole(s), Options[*corev1.Pod]{
			What: "things", Kind: &corev1.Pod{}, Only: "metadata.name=x", ListOnly: "status.phase!=x",
			Over: func(p *corev1.Pod) bool { return p.Labels["over"] != "" },
			Keep: func(o runtime.Object) *corev1.Pod {
				p, _ := o.(*corev1.Pod) // the server has only pods
				return &corev1.Pod{ObjectMeta: p.ObjectMeta}
			},
			Changed: func(before, after *corev1.Pod) {
				name := func(p *corev1.Pod) string {
					if p == nil {
						return "-"
					}
					assert.Empty(t, p.Spec.NodeName, "Keep drops the other fields")
					return p.Name + "/" + string(p.UID) + "/" + p.ResourceVersion
				}
				b.told = append(b.told, name(before)+" "+name(after))
			},
			Complete: func() { b.completed = append(b.completed, len(b.told)) },
			Refused:  func() { b.refused.Add(1) }, Log: log,
		})
		require.False(t, b.Current())
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			b.Run(ctx)
		}()
		synctest.Wait()
		check(t, b)
		began := time.Now()
		cancel()
		<-ended
		assert.Zero(t, time.Since(began), "Run returns at once")
		require.False(t, b.Current())
		assert.LessOrEqual(t, len(b.completed), 1, "Complete is called once")
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, o := range s.asked {
			want := "metadata.name=x"
			if o.SendInitialEvents != nil || o.TimeoutSeconds == nil {
				want += ",status.phase!=x"
			}
			assert.Equal(t, want, o.FieldSelector)
		}
	})
}

// sleep waits until the time has passed and the informer has done its work of that time.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func (b *bed) take() []string {
	told := b.told
	b.told = nil
	return told
}

// said returns the messages above debug level that were logged since the last call.
func (b *bed) said() (lines []string) {
	for _, entry := range b.log.AllEntries() {
		if entry.Level <= logrus.InfoLevel {
			lines = append(lines, entry.Message)
		}
	}
	b.log.Reset()
	return lines
}

// newest returns the watch that began last.
func (b *bed) newest() *watch.FakeWatcher {
	b.server.mu.Lock()
	defer b.server.mu.Unlock()
	return b.server.watches[len(b.server.watches)-1]
}

func TestEachChangeIsReportedOnce(t *testing.T) {
	t.Parallel()
	for _, unable := range []bool{false, true} {
		with(t, &server{pods: []corev1.Pod{pod("a", "1", "1")}, unable: unable}, func(t *testing.T, b *bed) {
			require.True(t, b.Current())
			require.Equal(t, []string{"- a/1/1"}, b.take())
			require.Equal(t, []int{1}, b.completed, "after the objects of the first list")
			changed, gone := pod("a", "1", "10"), pod("a", "1", "11")
			b.newest().Modify(&changed)
			b.newest().Delete(&gone)
			b.newest().Delete(&gone)
			synctest.Wait()
			require.Equal(t, []string{"a/1/1 a/1/10", "a/1/11 -"}, b.take())
			require.Empty(t, b.said())
		})
	}
}

// A list reports all objects, the deleted ones and the replaced ones. The state does not go back in time.
func TestRelist(t *testing.T) {
	t.Parallel()
	for _, unable := range []bool{false, true} {
		s := &server{pods: []corev1.Pod{pod("a", "1", "1"), pod("b", "2", "2")}, unable: unable}
		with(t, s, func(t *testing.T, b *bed) {
			b.take()
			s.lists()
			s.has(nil, pod("a", "1", "1"), pod("b", "3", "7"))
			b.Relist()
			synctest.Wait()
			require.ElementsMatch(t, []string{"a/1/1 a/1/1", "b/2/2 b/3/7"}, b.take(), "in any order")
			want := []string{"stream "}
			if unable {
				want = append(want, "list 9")
			}
			require.Equal(t, want, s.lists())
			s.has(nil, pod("a", "1", "1"))
			b.Relist()
			synctest.Wait()
			require.Equal(t, []string{"a/1/1 a/1/1", "b/3/7 -"}, b.take())
			require.True(t, b.Current())
			require.Empty(t, b.said())
		})
	}
}

// etcd was restored from an older copy: a watch from the last known version would be silent until there are as many
// versions again. The API server says nothing of that.
func TestAStoreThatWentBackInTimeIsListedAnew(t *testing.T) {
	t.Parallel()
	for _, unable := range []bool{false, true} {
		s := &server{unable: unable, pods: []corev1.Pod{pod("a", "1", "8"), pod("b", "2", "9")}}
		with(t, s, func(t *testing.T, b *bed) {
			b.take()
			s.lists()
			sleep(time.Minute)
			s.has(errRefused)
			b.newest().Stop()
			sleep(10 * time.Second)
			require.False(t, b.Current())
			require.True(t, b.CurrentSince(time.Now().Add(-10*time.Second-1)))
			require.False(t, b.CurrentSince(time.Now().Add(-10*time.Second)), "it failed first when the watch ended")
			s.mu.Lock()
			s.newest = 5
			s.mu.Unlock()
			s.has(nil, pod("a", "1", "5"))
			sleep(15 * time.Second)
			require.ElementsMatch(t, []string{"a/1/8 a/1/5", "b/2/9 -"}, b.take())
			require.True(t, b.Current())
			now := pod("a", "1", "6")
			b.newest().Modify(&now)
			synctest.Wait()
			require.Equal(t, []string{"a/1/5 a/1/6"}, b.take())
			require.Len(t, b.said(), 2, "the outage and its end")
			if unable {
				lists := s.lists()
				require.Equal(t, []string{"list 9", "list "}, lists[len(lists)-2:], "the API server has no state as new as the known one")
			}
		})
	}
}

var thing = schema.GroupResource{Resource: "things"}

// A fault is logged once, and its end is logged once.
func TestFaultsAreLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err     error
		line    string
		refused bool
	}{
		"away":      {errors.New("away"), "cannot watch things: using the last known objects; trying again until it works", false},
		"refused":   {errRefused, "cannot watch things: using the last known objects; trying again until it works", false},
		"busy":      {apierrors.NewTooManyRequests("later", 1), "cannot watch things: using the last known objects; trying again until it works", false},
		"forbidden": {apierrors.NewForbidden(thing, "", nil), "not allowed to watch things: give the daemon's user the roles in deploy/base/rbac.yaml; using the last known objects; trying again until it works", true},
		"unknown":   {apierrors.NewNotFound(thing, ""), "cannot watch things: using the last known objects; trying again until it works", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &server{err: c.err}
			with(t, s, func(t *testing.T, b *bed) {
				sleep(2 * time.Minute)
				require.False(t, b.Current())
				require.True(t, slices.ContainsFunc(b.log.AllEntries(), func(e *logrus.Entry) bool {
					err, _ := e.Data[logrus.ErrorKey].(error)
					return e.Message == c.line && errors.Is(err, c.err)
				}), "the log has the reason")
				require.Equal(t, []string{c.line}, b.said())
				require.Greater(t, len(s.lists()), 4, "the informer tries again")
				require.Equal(t, c.refused, b.refused.Load() > 0)
				require.Equal(t, "things", b.Fault().What)
				require.Equal(t, 2*time.Minute, time.Since(b.Fault().Since))
				require.ErrorIs(t, b.Fault().Err, c.err)
				s.has(nil)
				sleep(2 * time.Minute)
				require.True(t, b.Current())
				require.Nil(t, b.Fault())
				require.Equal(t, []string{"watching things again"}, b.said())
			})
		})
	}
}

// An API server that has just started refuses for a moment.
func TestARefusalThatPassesIsNone(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(thing, "", nil)
	s := &server{err: forbidden}
	with(t, s, func(t *testing.T, b *bed) {
		sleep(refusedAfter - 1)
		require.Greater(t, len(s.lists()), 1)
		require.Zero(t, b.refused.Load())
		s.has(errRefused)
		sleep(time.Hour)
		s.has(forbidden)
		for errors.Is(b.Fault().Err, errRefused) {
			sleep(time.Second)
		}
		require.Zero(t, b.refused.Load(), "it has just come back")
		sleep(2 * time.Minute)
		require.NotZero(t, b.refused.Load())
	})
}

// A watch that ends before its time is followed by a list, however it ends: nobody knows what is on the other side of the
// next connection. That is no failure while the API server answers.
func TestTheEndOfAWatch(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		end   func(*watch.FakeWatcher)
		lists bool
	}{
		"too old":  {func(w *watch.FakeWatcher) { w.Error(&apierrors.NewResourceExpired("too old").ErrStatus) }, true},
		"an error": {func(w *watch.FakeWatcher) { w.Error(&apierrors.NewBadRequest("strange").ErrStatus) }, true},
		"closed":   {func(w *watch.FakeWatcher) { w.Stop() }, true},
		"its time": {func(w *watch.FakeWatcher) { w.Stop() }, false},
	} {
		for _, after := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				t.Parallel()
				with(t, &server{}, func(t *testing.T, b *bed) {
					if asked := b.server.asked; !c.lists {
						after = time.Duration(*asked[len(asked)-1].TimeoutSeconds) * time.Second
					}
					b.server.lists()
					sleep(after)
					c.end(b.newest())
					synctest.Wait()
					require.Equal(t, !c.lists, b.Current())
					sleep(2 * time.Second)
					require.Equal(t, c.lists, len(b.server.lists()) > 0)
					one := pod("a", "1", "10")
					b.newest().Add(&one)
					synctest.Wait()
					require.Equal(t, []string{"- a/1/10"}, b.take())
					require.True(t, b.Current())
					require.Empty(t, b.said())
				})
			})
		}
	}
}

// The watch goes on from the last version that it knows, also where only a bookmark told it.
func TestAWatchGoesOnFromTheLastVersion(t *testing.T) {
	t.Parallel()
	with(t, &server{}, func(t *testing.T, b *bed) {
		b.newest().Action(watch.Bookmark, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{ResourceVersion: "12"}})
		synctest.Wait()
		first := b.server.asked[len(b.server.asked)-1]
		sleep(time.Duration(*first.TimeoutSeconds) * time.Second)
		b.newest().Stop()
		synctest.Wait()
		next := b.server.asked[len(b.server.asked)-1]
		require.Equal(t, "9 12", first.ResourceVersion+" "+next.ResourceVersion)
	})
}

// An object that will not change any more is reported, and not kept. Lists do not show it. Its deletion is reported.
func TestWhatIsOverIsNotKept(t *testing.T) {
	t.Parallel()
	for _, unable := range []bool{false, true} {
		s := &server{unable: unable, pods: []corev1.Pod{pod("a", "1", "1")}}
		with(t, s, func(t *testing.T, b *bed) {
			b.take()
			over := pod("a", "1", "10")
			over.Labels = map[string]string{"over": "yes"}
			b.newest().Modify(&over)
			synctest.Wait()
			require.Equal(t, []string{"a/1/1 a/1/10"}, b.take())
			require.Empty(t, b.known)
			s.has(nil)
			b.Relist()
			synctest.Wait()
			require.Empty(t, b.take(), "a list without it is no deletion")
			b.newest().Delete(&over)
			synctest.Wait()
			require.Equal(t, []string{"a/1/10 -"}, b.take())
		})
	}
}

// A streamed list is complete at its bookmark, not when the stream begins.
func TestAStreamedListIsCompleteAtItsEnd(t *testing.T) {
	t.Parallel()
	s := &server{endless: true, pods: []corev1.Pod{pod("a", "1", "1")}}
	with(t, s, func(t *testing.T, b *bed) {
		require.Equal(t, []string{"- a/1/1"}, b.take())
		require.False(t, b.Current() || b.Listed())
		require.Empty(t, b.completed)
		b.newest().Action(watch.Bookmark, initialEnd(9))
		synctest.Wait()
		require.True(t, b.Current() && b.Listed())
		require.Len(t, b.completed, 1)
	})
}

// A proxy passes no bookmarks on, and ends each stream.
func TestAStreamWithoutItsBookmarkIsFollowedByAPlainList(t *testing.T) {
	t.Parallel()
	s := &server{endless: true, pods: []corev1.Pod{pod("a", "1", "1")}}
	with(t, s, func(t *testing.T, b *bed) {
		require.Equal(t, []string{"- a/1/1"}, b.take())
		s.has(nil, pod("b", "2", "2")) // nobody saw that the other one was deleted
		b.newest().Stop()
		synctest.Wait()
		require.ElementsMatch(t, []string{"- b/2/2", "a/1/1 -"}, b.take())
		require.True(t, b.Current() && b.Listed())
		require.Empty(t, b.said())
	})
}
