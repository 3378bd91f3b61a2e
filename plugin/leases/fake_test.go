package leases

import (
	"context"
	"errors"
	"maps"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

var leaseResource = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// fakeAPI keeps Leases as the API server does. Versions grow with every write. A write that names another version is
// refused. Watches continue where they ended.
type fakeAPI struct {
	kube.Leases // the methods that are missing here are not called

	mu      sync.Mutex
	away    error  // returned by every call; nil if the calls work
	denied  string // the holder that may create no Lease
	delay   time.Duration
	version uint64
	leases  map[string]*coordinationv1.Lease
	writes  int
}

func newFakeAPI() *fakeAPI {
	return &fakeAPI{leases: map[string]*coordinationv1.Lease{}, version: 100, delay: 5 * time.Millisecond}
}

func (f *fakeAPI) setAway(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.away = err
}

// arrive delays a request. If the request arrives, it returns with the lock held.
func (f *fakeAPI) arrive(ctx context.Context) error {
	f.mu.Lock()
	delay := f.delay
	f.mu.Unlock()
	if delay > 0 {
		select {
		case <-time.After(delay):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	f.mu.Lock()
	if f.away != nil {
		defer f.mu.Unlock()
		return f.away
	}
	return nil
}

func (f *fakeAPI) recordLocked(l *coordinationv1.Lease) *coordinationv1.Lease {
	f.version++
	f.writes++
	l = l.DeepCopy()
	l.ResourceVersion = strconv.FormatUint(f.version, 10)
	if l.UID == "" {
		l.UID = types.UID("uid-" + l.ResourceVersion)
	}
	return l
}

func (f *fakeAPI) Create(ctx context.Context, l *coordinationv1.Lease, _ metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if err := f.arrive(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	if f.leases[l.Name] != nil {
		return nil, apierrors.NewAlreadyExists(leaseResource, l.Name)
	}
	if *l.Spec.HolderIdentity == f.denied {
		return nil, apierrors.NewForbidden(leaseResource, l.Name, errors.New("it is denied"))
	}
	l = f.recordLocked(l)
	f.leases[l.Name] = l
	return l.DeepCopy(), nil
}

func (f *fakeAPI) Update(ctx context.Context, l *coordinationv1.Lease, _ metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := f.arrive(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	now := f.leases[l.Name]
	switch {
	case now == nil:
		return nil, apierrors.NewNotFound(leaseResource, l.Name)
	case now.ResourceVersion != l.ResourceVersion || now.UID != l.UID:
		return nil, apierrors.NewConflict(leaseResource, l.Name, errors.New("it was modified"))
	}
	l = f.recordLocked(l)
	f.leases[l.Name] = l
	return l.DeepCopy(), nil
}

func (f *fakeAPI) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if err := f.arrive(ctx); err != nil {
		return err
	}
	defer f.mu.Unlock()
	now := f.leases[name]
	switch {
	case now == nil:
		return apierrors.NewNotFound(leaseResource, name)
	case *o.Preconditions.ResourceVersion != now.ResourceVersion || *o.Preconditions.UID != now.UID:
		return apierrors.NewConflict(leaseResource, name, errors.New("precondition"))
	}
	f.recordLocked(now)
	delete(f.leases, name)
	return nil
}

func (f *fakeAPI) Get(ctx context.Context, name string, _ metav1.GetOptions) (*coordinationv1.Lease, error) {
	if err := f.arrive(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	if l := f.leases[name]; l != nil {
		return l.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(leaseResource, name)
}

func (f *fakeAPI) List(ctx context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	if err := f.arrive(ctx); err != nil {
		return nil, err
	}
	defer f.mu.Unlock()
	list := &coordinationv1.LeaseList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.FormatUint(f.version, 10)}}
	for _, l := range f.leases {
		if l.Labels[o.LabelSelector] != "" {
			list.Items = append(list.Items, *l)
		}
	}
	return list, nil
}

// backup is the state that restore needs.
type backup struct {
	version uint64
	leases  map[string]*coordinationv1.Lease
}

func (f *fakeAPI) backup() backup {
	f.mu.Lock()
	defer f.mu.Unlock()
	b := backup{version: f.version, leases: maps.Clone(f.leases)}
	f.version += 1_000_000 // others write in between, too
	return b
}

// restore replaces all Leases by those of the backup. The versions continue from there.
func (f *fakeAPI) restore(b backup) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.version, f.leases = b.version, maps.Clone(b.leases)
}

func (f *fakeAPI) written() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.writes
}

// held returns the holders of the Leases.
func (f *fakeAPI) held() (holders []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, l := range f.leases {
		holders = append(holders, *l.Spec.HolderIdentity)
	}
	return holders
}

// claiming is a node with a real limiter and a claimer.
type claiming struct {
	*Claimer
	t       *testing.T
	limiter *guarded
	logged  *logtest.Hook
	opened  atomic.Pointer[[]string]
	changes atomic.Int64 // of opened
	cancel  func()
	done    chan struct{}
}

// guarded is a limiter with the lock of its owner.
type guarded struct {
	mu sync.Mutex
	l  *throttle.Limiter
}

func (g *guarded) Groups(now time.Time) []throttle.GroupView {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.l.Groups(now)
}

func (g *guarded) SetClaims(now time.Time, key throttle.GroupKey, starts int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.l.SetClaims(now, key, starts)
}

// locked calls f under the lock.
func (g *guarded) locked(f func(now time.Time, l *throttle.Limiter)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f(time.Now(), g.l)
}

var (
	registry   = throttle.GroupKey{Policy: "registry"}
	ofRegistry = []throttle.Membership{{Key: registry}}
)

func startClaiming(t *testing.T, api *fakeAPI, holder string, slots int) *claiming {
	t.Helper()
	c := newClaiming(t, api, holder, slots)
	c.run()
	return c
}

// oneNode runs test with a node that claims, in a bubble.
func oneNode(t *testing.T, slots int, test func(t *testing.T, api *fakeAPI, a *claiming)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		test(t, api, startClaiming(t, api, "a", slots))
	})
}

// twoNodes runs test with two nodes that share one slot.
func twoNodes(t *testing.T, test func(t *testing.T, api *fakeAPI, a, b *claiming)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		api := newFakeAPI()
		test(t, api, startClaiming(t, api, "a", 1), startClaiming(t, api, "b", 1))
	})
}

func newClaiming(t *testing.T, api *fakeAPI, holder string, slots int) *claiming {
	t.Helper()
	log, hook := logtest.NewNullLogger()
	log.SetLevel(logrus.DebugLevel)
	c := &claiming{t: t, logged: hook}
	c.limiter = &guarded{l: throttle.New(time.Now(), throttle.Settings{MaxWait: 24 * time.Hour, StartTimeout: 24 * time.Hour})}
	c.Claimer = New(Options{
		API: api, Holder: holder, Limiter: c.limiter, Nodes: func() int { return 3 }, Log: log,
		OpenChanged: func(open []string, _ error) { c.opened.Store(&open); c.changes.Add(1) },
	})
	c.setSlots(slots)
	return c
}

// setSlots puts a policy with this many slots in force.
func (c *claiming) setSlots(slots int) {
	c.setPolicies(map[string]throttle.GroupLimits{
		"registry": {Claims: &throttle.Claims{Owner: "policy-uid", Slots: slots, OpenAfter: 30 * time.Second}},
	})
}

func (c *claiming) setPolicies(limits map[string]throttle.GroupLimits) {
	c.limiter.locked(func(now time.Time, l *throttle.Limiter) { l.SetPolicies(now, limits) })
	c.Wake()
}

// run runs the claimer until stop, or until the end of the test.
func (c *claiming) run() {
	ctx, cancel := context.WithCancel(c.t.Context())
	c.cancel, c.done = cancel, make(chan struct{})
	c.t.Cleanup(c.stop)
	go func() {
		defer close(c.done)
		c.Run(ctx)
	}()
}

func (c *claiming) stop() {
	c.cancel()
	<-c.done
}

// join adds a waiting pod.
func (c *claiming) join(uid string) (ticket *throttle.Ticket) { return c.joinGroups(uid, ofRegistry) }

func (c *claiming) joinGroups(uid string, groups []throttle.Membership) (ticket *throttle.Ticket) {
	c.limiter.locked(func(now time.Time, l *throttle.Limiter) {
		ticket = l.Join(now, throttle.Request{UID: uid, Name: uid, Groups: groups})
		ticket.Wait(now)
	})
	c.Wake()
	return ticket
}

// starts returns the starts under way.
func (c *claiming) starts() (all []*throttle.Ticket) {
	c.limiter.locked(func(now time.Time, l *throttle.Limiter) {
		for _, v := range l.Snapshot(now).Starting {
			all = append(all, l.Lookup(v.UID))
		}
	})
	return all
}

func (c *claiming) starting() int { return len(c.starts()) }

func (c *claiming) state(ticket *throttle.Ticket) (state throttle.State) {
	c.limiter.locked(func(time.Time, *throttle.Limiter) { state, _ = ticket.Status() })
	return state
}

func (c *claiming) end(ticket *throttle.Ticket) {
	require.Equal(c.t, throttle.Starting, c.state(ticket))
	c.gone(ticket, reasons.Ready)
}

// gone ends a ticket for a reason.
func (c *claiming) gone(ticket *throttle.Ticket, reason reasons.Reason) {
	c.limiter.locked(func(now time.Time, _ *throttle.Limiter) { ticket.End(now, reason) })
	c.Wake()
}
