package informer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync"
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
	"k8s.io/client-go/tools/cache"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var errRefused = fmt.Errorf("dial: %w", syscall.ECONNREFUSED)

// server is an API server with pods.
type server struct {
	unable  bool // it cannot stream the list
	endless bool // a streamed list does not end by itself

	mu      sync.Mutex
	pods    []corev1.Pod
	err     error // of each request; nil: it answers
	newest  int   // a request for a later version fails; 0: there is none
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
	if version, _ := strconv.Atoi(o.ResourceVersion); s.newest > 0 && version > s.newest {
		return apierrors.NewTimeoutError("Too large resource version", 1)
	}
	return s.err
}

func (s *server) List(_ context.Context, o metav1.ListOptions) (*corev1.PodList, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.faultLocked(o); err != nil {
		return nil, err
	}
	return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "9"}, Items: append([]corev1.Pod{}, s.pods...)}, nil
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
			w.Action(watch.Bookmark, initialEnd())
		}
	}
	s.watches = append(s.watches, w)
	return w, nil
}

// initialEnd is the object of the event that ends a streamed list.
func initialEnd() *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		ResourceVersion: "9", Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
	}}
}

// lists returns the versions from which the last requests listed, and forgets them.
func (s *server) lists() (from []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, o := range s.asked {
		if !o.Watch && o.SendInitialEvents == nil && o.TimeoutSeconds == nil {
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
	refused int
	log     *logtest.Hook

	completed []int // how many changes were told when Complete was called
}

// with runs an informer in a bubble until check returns.
func with(t *testing.T, s *server, check func(t *testing.T, b *bed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		log, said := logtest.NewNullLogger()
		b := &bed{server: s, log: said}
		b.Informer = New(s, Options[*corev1.Pod]{
			What: "things", Kind: &corev1.Pod{}, Only: "metadata.name=x",
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
			Refused:  func() { b.refused++ }, Log: log,
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
			assert.Equal(t, "metadata.name=x", o.FieldSelector)
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
			first := b.Listed()
			sleep(time.Second)
			s.has(nil, pod("a", "1", "1"), pod("b", "3", "7"))
			b.Relist()
			synctest.Wait()
			require.ElementsMatch(t, []string{"a/1/1 a/1/1", "b/2/2 b/3/7"}, b.take(), "in any order")
			want := []string{"stream 9"}
			if unable {
				want = append(want, "list 9")
			}
			require.Equal(t, want, s.lists())
			require.Equal(t, time.Second, b.Listed().Sub(first))
			s.has(nil, pod("a", "1", "1"))
			b.Relist()
			synctest.Wait()
			require.Equal(t, []string{"a/1/1 a/1/1", "b/3/7 -"}, b.take())
			require.True(t, b.Current())
			require.Empty(t, b.said())
		})
	}
}

// A list that must not be older fails. The next one may then come from any version: the server may have been restored
// from a backup.
func TestARelistThatFailsIsTriedFromAnyVersion(t *testing.T) {
	t.Parallel()
	s := &server{}
	with(t, s, func(t *testing.T, b *bed) {
		s.lists()
		s.mu.Lock()
		s.newest = 3
		s.mu.Unlock()
		b.Relist()
		sleep(time.Minute)
		lists := s.lists()
		require.Equal(t, "stream 9", lists[0])
		require.NotContains(t, lists[1:], "stream 9")
		require.True(t, b.Current())
	})
}

// A state that the caller doubts is listed again from the newest version. The new list counts from then on.
func TestDistrust(t *testing.T) {
	t.Parallel()
	for _, unable := range []bool{false, true} {
		s := &server{unable: unable}
		with(t, s, func(t *testing.T, b *bed) {
			s.lists()
			why := errors.New("a container runs")
			b.Distrust(why)
			require.False(t, b.Current())
			require.Len(t, b.said(), 1)
			b.newest().Stop() // as each watch does after some minutes; the next one is as silent
			synctest.Wait()
			require.False(t, b.Current())
			require.Empty(t, s.lists())
			b.Relist()
			synctest.Wait()
			require.True(t, b.Current())
			want := []string{"stream "}
			if unable {
				want = append(want, "list ")
			}
			require.Equal(t, want, s.lists())
			require.Equal(t, []string{"watching things again"}, b.said())
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
		"unknown": {
			apierrors.NewNotFound(thing, ""),
			"the API server does not know things: install its CustomResourceDefinition (kubectl apply -k deploy/crds); trying again until it does", true,
		},
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
				require.Equal(t, c.refused, b.refused > 0)
				s.has(nil)
				sleep(2 * time.Minute)
				require.True(t, b.Current())
				require.Equal(t, []string{"watching things again"}, b.said())
			})
		})
	}
}

func TestAWatchThatIsForbiddenAfterAnotherFaultIsLogged(t *testing.T) {
	t.Parallel()
	with(t, &server{err: errRefused}, func(t *testing.T, b *bed) {
		sleep(2 * time.Minute)
		require.Len(t, b.said(), 1)
		b.server.has(apierrors.NewForbidden(thing, "", nil))
		sleep(2 * time.Minute)
		said := b.said()
		require.Len(t, said, 1)
		require.Contains(t, said[0], "not allowed to watch things")
	})
}

// However a watch ends, the objects are followed again. That is no failure while the API server answers.
func TestTheEndOfAWatch(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*watch.FakeWatcher){
		"too old":       func(w *watch.FakeWatcher) { w.Error(&apierrors.NewResourceExpired("too old").ErrStatus) },
		"an error":      func(w *watch.FakeWatcher) { w.Error(&apierrors.NewBadRequest("strange").ErrStatus) },
		"a regular end": func(w *watch.FakeWatcher) { w.Stop() },
	} {
		for _, after := range []time.Duration{0, time.Minute} {
			t.Run(fmt.Sprint(name, " after ", after), func(t *testing.T) {
				t.Parallel()
				with(t, &server{unable: true}, func(t *testing.T, b *bed) {
					sleep(after)
					end(b.newest())
					sleep(time.Minute)
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

// A streamed list is complete at its bookmark, not when the stream begins.
func TestAStreamedListIsCompleteAtItsEnd(t *testing.T) {
	t.Parallel()
	s := &server{endless: true, pods: []corev1.Pod{pod("a", "1", "1")}}
	with(t, s, func(t *testing.T, b *bed) {
		require.False(t, b.Current())
		require.Empty(t, b.take())
		b.newest().Action(watch.Bookmark, initialEnd())
		synctest.Wait()
		require.True(t, b.Current())
		require.Equal(t, []string{"- a/1/1"}, b.take())
	})
}

func TestOnlyTheFirstObjectsAreListedWhereAConnectionIsRefused(t *testing.T) {
	t.Parallel()
	log, _ := logtest.NewNullLogger()
	i := New(&server{err: errRefused}, Options[*corev1.Pod]{What: "things", Kind: &corev1.Pod{}, Log: log})
	yes, api := true, cache.ToListerWatcherWithContext(i.api)
	_, err := api.WatchWithContext(t.Context(), metav1.ListOptions{SendInitialEvents: &yes})
	require.EqualError(t, err, errRefused.Error())
	require.NotErrorIs(t, err, syscall.ECONNREFUSED)
	_, err = api.WatchWithContext(t.Context(), metav1.ListOptions{})
	require.ErrorIs(t, err, syscall.ECONNREFUSED, "the watch is tried again from its last version")
}
