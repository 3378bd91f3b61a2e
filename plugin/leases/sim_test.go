package leases

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// simCluster has nodes with real claimers, limiters that know one group, and an API server that answers late, from
// old memory, or not at all. It takes its time from synctest.
type simCluster struct {
	t     *testing.T
	api   *fakeAPI
	limit int
	nodes []*simNode
	// How long requests take at most, how old lists are at most, and how long starts take.
	latency, lag time.Duration
	starts       func() time.Duration
	open         time.Duration

	mu         sync.Mutex
	admissions int
	arrived    int
	conflicts  uint64
	lost       uint64
}

func newSimCluster(t *testing.T, nodes, limit int) *simCluster {
	s := &simCluster{t: t, api: newFakeAPI(), limit: limit, latency: 10 * time.Millisecond, lag: 40 * time.Millisecond, open: 24 * time.Hour}
	s.api.delay = 0
	s.starts = func() time.Duration { return 5*time.Second + rand.N(20*time.Second) }
	for i := range nodes {
		n := &simNode{fakeAPI: s.api, s: s, name: fmt.Sprintf("node-%d", i)}
		s.nodes = append(s.nodes, n)
		n.boot()
	}
	return s
}

// simNode is a node. It is the limiter and the API of its claimer.
type simNode struct {
	*fakeAPI
	s       *simCluster
	name    string
	claimer *Claimer
	cut     atomic.Bool // the API server cannot be reached
	touched atomic.Int64
	kill    func() // ends boot's daemon

	mu                       sync.Mutex
	alive                    bool // its daemon runs
	waiting, starting, level int
	admitted                 []time.Time
}

// boot starts a daemon that knows only the starts under way.
func (n *simNode) boot() {
	log, _ := logtest.NewNullLogger()
	claimer := New(Options{
		API: n, Holder: n.name, Limiter: n, Nodes: func() int { return len(n.s.nodes) }, Log: log, OpenChanged: func([]string, error) {},
	})
	ctx, cancel := context.WithCancel(n.s.t.Context())
	done := make(chan struct{})
	n.mu.Lock()
	defer n.mu.Unlock()
	n.claimer, n.level, n.alive = claimer, 0, true
	n.kill = func() {
		n.mu.Lock()
		n.alive = false
		n.mu.Unlock()
		cancel()
		<-done
		n.s.mu.Lock()
		defer n.s.mu.Unlock()
		n.s.conflicts += claimer.View().Conflicts
		n.s.lost += claimer.View().Lost
	}
	go func() { defer close(done); claimer.Run(ctx) }()
}

func (n *simNode) Groups(time.Time) []throttle.GroupView {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.waiting+n.starting == 0 {
		return nil
	}
	claims := &throttle.Claims{Owner: "uid", Slots: n.s.limit, OpenAfter: n.s.open}
	v := throttle.GroupView{Key: registry, Limits: throttle.GroupLimits{Claims: claims}, Waiting: n.waiting, Wants: n.waiting}
	v.Starting.Pods = int64(n.starting)
	return []throttle.GroupView{v}
}

func (n *simNode) SetClaims(_ time.Time, _ throttle.GroupKey, starts int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.level = starts
	n.admitLocked()
}

// admitLocked admits as soon as the limiter may.
func (n *simNode) admitLocked() {
	for n.alive && n.waiting > 0 && (n.level < 0 || n.starting < n.level) {
		n.waiting--
		n.starting++
		n.admitted = append(n.admitted, time.Now())
		n.s.mu.Lock()
		n.s.admissions++
		n.s.mu.Unlock()
		time.AfterFunc(n.s.starts(), func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.starting--
			n.admitLocked()
			n.claimer.Wake()
		})
	}
}

func (n *simNode) arrive(pods int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waiting += pods
	n.admitLocked()
	n.claimer.Wake()
	n.s.mu.Lock()
	defer n.s.mu.Unlock()
	n.s.arrived += pods
}

var errAway = errors.New("the API server does not answer")

// touch orders the test's reads of a claimer before the claimer's next steps.
func (n *simNode) touch() { n.touched.Add(1) }

// travel is the way of a request or an answer.
func (n *simNode) travel(ctx context.Context) error {
	defer n.touch()
	select {
	case <-time.After(rand.N(n.s.latency / 2)):
	case <-ctx.Done():
		return ctx.Err()
	}
	if !n.cut.Load() {
		return nil
	}
	<-ctx.Done()
	return errAway
}

func (n *simNode) List(ctx context.Context, o metav1.ListOptions) (*coordinationv1.LeaseList, error) {
	defer n.touch() // also if the deadline ends the lag
	if err := n.travel(ctx); err != nil {
		return nil, err
	}
	list, err := n.fakeAPI.List(ctx, o)
	if err != nil {
		return nil, err
	}
	select {
	case <-time.After(rand.N(n.s.lag)):
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	return list, n.travel(ctx)
}

func (n *simNode) Create(ctx context.Context, l *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	if err := n.travel(ctx); err != nil {
		return nil, err
	}
	made, err := n.fakeAPI.Create(ctx, l, o)
	return made, errors.Join(err, n.travel(ctx))
}

func (n *simNode) Update(ctx context.Context, l *coordinationv1.Lease, o metav1.UpdateOptions) (*coordinationv1.Lease, error) {
	if err := n.travel(ctx); err != nil {
		return nil, err
	}
	made, err := n.fakeAPI.Update(ctx, l, o)
	return made, errors.Join(err, n.travel(ctx))
}

func (n *simNode) Delete(ctx context.Context, name string, o metav1.DeleteOptions) error {
	if err := n.travel(ctx); err != nil {
		return err
	}
	return errors.Join(n.fakeAPI.Delete(ctx, name, o), n.travel(ctx))
}

// held counts the claims that nodes rely on now. All goroutines must be idle.
func (s *simCluster) held() (held int) {
	for _, n := range s.nodes {
		held += n.held()
	}
	return held
}

func (n *simNode) held() (held int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	defer n.touch()
	if n.alive {
		of := 0
		for _, g := range n.claimer.groups {
			for _, c := range g.claims {
				if time.Now().Before(c.until) {
					held++
				}
				if time.Now().Before(c.until.Add(leastPass)) {
					of++
				}
			}
		}
		assert.LessOrEqual(n.s.t, n.level, of, "%s may start more pods than it has claims", n.name)
	}
	return held
}

func (s *simCluster) waiting() (waiting int) {
	for _, n := range s.nodes {
		n.mu.Lock()
		waiting += n.waiting
		n.mu.Unlock()
	}
	return waiting
}

// stop ends all daemons, even after a failure.
func (s *simCluster) stop() {
	for _, n := range s.nodes {
		if n.alive {
			n.kill()
		}
	}
}

// watch lets the time pass. It checks at each step that no more claims are held than there are slots, and returns the
// most.
func (s *simCluster) watch(most time.Duration, done func() bool) (held int) {
	for end := time.Now().Add(most); time.Now().Before(end) && !s.t.Failed() && !done(); {
		time.Sleep(100 * time.Millisecond)
		synctest.Wait()
		held = max(held, s.held())
		assert.LessOrEqual(s.t, held, s.limit)
	}
	return held
}

// trouble makes pods come, kills daemons, and cuts off nodes and the API server, all for some time.
func (s *simCluster) trouble(ctx context.Context, minutes int) *sync.WaitGroup {
	var running sync.WaitGroup
	for _, n := range s.nodes {
		running.Go(func() {
			for end := time.Now().Add(time.Duration(minutes) * time.Minute); time.Now().Before(end) && ctx.Err() == nil; {
				time.Sleep(rand.N(time.Minute))
				n.arrive(1)
				switch rand.IntN(6) {
				case 0:
					n.cut.Store(true) // its request may succeed without an answer
					n.kill()
					n.cut.Store(false)
					time.Sleep(rand.N(time.Minute))
					n.boot()
				case 1:
					n.cut.Store(true)
					time.Sleep(rand.N(90 * time.Second))
					n.cut.Store(false)
				case 2:
					s.api.setAway(errAway)
					time.Sleep(rand.N(30 * time.Second))
					s.api.setAway(nil)
				}
			}
		})
	}
	return &running
}

// Through all trouble, nodes never rely on more slots than there are. When the trouble is over, every pod gets a
// slot, and all slots are given back.
func TestNeverMoreThanTheLimitHoldSlots(t *testing.T) {
	t.Parallel()
	var lost, conflicts uint64
	for round := range 6 {
		nodes, limit := 2+round%7, 1+round%4
		synctest.Test(t, func(t *testing.T) {
			s := newSimCluster(t, nodes, limit)
			defer s.stop()
			s.latency, s.lag = 50*time.Millisecond+rand.N(2*time.Second), 50*time.Millisecond+rand.N(5*time.Second)
			trouble := s.trouble(t.Context(), 15)
			most := s.watch(15*time.Minute, func() bool { return false })
			trouble.Wait()
			most = max(most, s.watch(2*time.Hour, func() bool { return s.waiting() == 0 }))
			require.Zero(t, s.waiting(), "%d nodes, %d slots: a pod starves", nodes, limit)
			require.Equal(t, s.arrived, s.admissions)
			require.Equal(t, min(limit, most), most)
			require.Positive(t, most)
			s.watch(2*time.Minute, func() bool { return false })
			require.Zero(t, s.held())
			s.stop()
			lost, conflicts = lost+s.lost, conflicts+s.conflicts
		})
	}
	t.Logf("%d claims lost, %d conflicts", lost, conflicts)
	assert.Positive(t, lost, "no claim was lost, so the trouble tests nothing")
	assert.Positive(t, conflicts, "no write conflicted, so the nodes did not compete")
}

var large = flag.Bool("large", false, "simulate 30 to 1,000 nodes, too, for minutes")

// This test measures the cost of a herd that comes to all nodes at once. With -v and -large it gave, for starts of 5 to 25 s,
// requests that take up to 10 ms, and lists that are up to 40 ms old, renewals included:
//
//	nodes  pods each  slots  writes/start  of these too late  lists/s  longest without a turn
//	    1         40      1           3.3                  0      0.1
//	    3         40      2           3.3                0.1        5  2.7 rounds
//	   30         20      5           4.5                1.3       62  5.5 rounds
//	  100         12     10           5.3                2.1      105  5.8 rounds
//	1,000          1     20           4.5                1.3       68
//	1,000          1    100           4.3                1.1       74
//
// A round is the time in which each node gets one turn on average. The lists are the mean over the herd; while all 1,000
// nodes wait, there are 130 a second.
func TestAHerdSharesTheSlots(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		nodes, pods, slots int
		idle               time.Duration
	}{
		{1, 40, 1, 2 * time.Second}, {3, 40, 2, 2 * time.Second}, {30, 20, 5, time.Second}, {100, 12, 10, time.Second}, {1000, 1, 20, time.Second}, {1000, 1, 100, 2 * time.Second},
	} {
		if c.nodes > 3 && !*large {
			continue
		}
		synctest.Test(t, func(t *testing.T) {
			s := newSimCluster(t, c.nodes, c.slots)
			begun := time.Now()
			for _, n := range s.nodes {
				time.AfterFunc(rand.N(200*time.Millisecond), func() { n.arrive(c.pods) })
			}
			total := c.nodes * c.pods
			admitted := func() bool {
				s.mu.Lock()
				defer s.mu.Unlock()
				return s.admissions == total
			}
			for !admitted() {
				time.Sleep(time.Second)
				synctest.Wait()
				assert.LessOrEqual(t, s.held(), c.slots)
			}
			took := time.Since(begun)
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			require.Empty(t, s.api.held())
			writes, looks, drought := 0.0, 0.0, 0.0
			turn := took * time.Duration(c.nodes) / time.Duration(total)
			for _, n := range s.nodes {
				for v, k := range n.claimer.View().Calls {
					if v == string(lookSlots) {
						looks += float64(k)
					} else {
						writes += float64(k)
					}
				}
				last := begun
				for _, at := range n.admitted {
					drought = max(drought, at.Sub(last).Seconds()/turn.Seconds())
					last = at
				}
			}
			s.stop()
			// A slot in constant use has a start every 15 s.
			idle := took*time.Duration(c.slots)/time.Duration(total) - 15*time.Second*time.Duration(max(1, total-c.slots))/time.Duration(total)
			t.Logf("%d nodes, %d pods each, %d slots: %.1f writes and %.2f conflicts for each start, %.1f lists/s, about %s idle, %.1f rounds without a turn",
				c.nodes, c.pods, c.slots, writes/float64(total), float64(s.conflicts)/float64(total), looks/took.Seconds(), idle.Round(10*time.Millisecond), drought)
			assert.Less(t, float64(s.conflicts)/float64(total), 3.0, "there are too many conflicts")
			assert.Less(t, idle, c.idle+2*time.Second, "the slots are idle for too long")
		})
	}
}
