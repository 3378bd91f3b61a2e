package plugin

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// TurnAnnotation is what a kick changes on a pod: the time of its turn. It means
// nothing to the daemon, which never reads it.
const TurnAnnotation = "pod-pacemaker.io/turn"

// Bounds of the kicks. An API server serves thousands of nodes.
const (
	kicksEvery = 200 * time.Millisecond // in the long run
	kickBurst  = 10
	// kickComes is how long a pod that was kicked, or came back by itself, counts as
	// being on its way to the free slot. Then another is kicked for it.
	kickComes = 5 * time.Second
	// kickAgain is the time between two kicks of one pod that comes in vain, doubled
	// with each, up to that in which kubelet comes back anyway.
	kickAgain     = time.Second
	kickAgainMost = 16 * time.Second
	// kickSweep is the time between two looks for those that wait no longer.
	kickSweep = 5 * time.Second
)

// kicker has kubelet come back at once to the pods whose turn it is, where they
// cannot wait in the gate: the change of an annotation makes it look at a pod again,
// 10 to 15 s before it would. Made by newKicker; nil kicks nobody. Safe for
// concurrent use; look is for the pacer's run alone.
type kicker struct {
	limiter *throttle.Limiter
	metrics *metrics
	log     logrus.FieldLogger
	patch   func(ctx context.Context, namespace, name string, patch []byte) error
	wake    func() // has look called
	bound   *rate.Limiter
	queue   chan kick
	warned  remind
	done    atomic.Uint64

	mu    sync.Mutex
	pods  map[string]*kicked // that wait, or did a moment ago, by UID
	swept time.Time
}

// kicked is what the kicker knows of a pod that waits.
type kicked struct {
	title string
	// away: it was refused where it cannot wait in the gate, and kubelet has not come
	// back; gated: it was refused, and may wait there when kubelet has.
	away, gated bool
	since       time.Time // of away and gated, or of when it came
	last        time.Time // kick
	times       int       // it was kicked
}

// kick is a kick on its way.
type kick struct {
	uid, title string
	turn       time.Time
}

func newKicker(client kube.Interface, p *pacer) *kicker {
	return &kicker{
		limiter: p.limiter, metrics: p.metrics, log: p.log, wake: p.wake,
		bound: rate.NewLimiter(rate.Every(kicksEvery), kickBurst),
		queue: make(chan kick, mostQueuedKicks), pods: map[string]*kicked{},
		patch: func(ctx context.Context, namespace, name string, patch []byte) error {
			_, err := client.Pods(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
			return err
		},
	}
}

// came takes note that kubelet has come for a pod.
func (k *kicker) came(now time.Time, uid string) {
	if k == nil {
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.ofLocked(uid)
	e.away, e.gated, e.since = false, false, now
}

// refused takes note that a pod of the API server was refused; gated: it may wait in
// the gate when kubelet is back.
func (k *kicker) refused(now time.Time, uid, title string, gated bool) {
	if k == nil {
		return
	}
	defer k.wake()
	k.mu.Lock()
	defer k.mu.Unlock()
	e := k.ofLocked(uid)
	e.title, e.away, e.gated, e.since = title, !gated, gated, now
}

func (k *kicker) ofLocked(uid string) *kicked {
	e := k.pods[uid]
	if e == nil {
		e = &kicked{}
		k.pods[uid] = e
	}
	return e
}

// look kicks those whose turn it is, and gives the time of the next look; zero: not
// before something happens. Where nobody is held, it forgets all.
func (k *kicker) look(now time.Time, holds bool) (next time.Time) {
	if k == nil {
		return time.Time{}
	}
	s := k.limiter.Snapshot(now)
	free, absent := absentFrom(s)
	k.mu.Lock()
	defer k.mu.Unlock()
	if !holds {
		clear(k.pods)
		return time.Time{}
	}
	k.sweepLocked(now)
	if len(absent) > 0 {
		next = s.Opens
	}
	for _, v := range absent {
		if free == 0 {
			break
		}
		e := k.pods[v.UID]
		if e == nil || e.gated {
			continue
		}
		if until := e.onItsWay(); now.Before(until) {
			free--
			next = sooner(next, until)
			continue
		}
		if !e.away {
			continue // its images are being pulled
		}
		if again := e.again(); now.Before(again) {
			next = sooner(next, again)
			continue
		}
		if !k.bound.AllowN(now, 1) {
			next = sooner(next, now.Add(kicksEvery))
			break
		}
		e.last, e.times = now, e.times+1
		free--
		next = sooner(next, now.Add(kickComes))
		k.sendLocked(kick{uid: v.UID, title: e.title, turn: now})
	}
	return next
}

// absentFrom gives how many starts the limits allow now though no process waits for one,
// and the pods that wait without a process and that no policy holds, in the order of the
// queue. Of limits that are no number, nobody knows how many they allow beyond the next.
func absentFrom(s throttle.Snapshot) (free int, pods []throttle.TicketView) {
	switch {
	case s.Held.Reason != "":
	case s.Limit == 0:
		free = 1
	default:
		free = s.Limit + s.Lent
		for _, v := range s.Starting {
			if v.Slot {
				free--
			}
		}
	}
	for _, v := range s.Waiting {
		if !v.Present && !heldByPolicy(v) {
			pods = append(pods, v)
		}
	}
	return free, pods
}

// onItsWay gives until when the pod counts as coming; one that was refused since it
// was kicked does not.
func (e *kicked) onItsWay() time.Time {
	switch {
	case !e.away:
		return e.since.Add(kickComes)
	case !e.last.Before(e.since):
		return e.last.Add(kickComes)
	default:
		return time.Time{}
	}
}

// again gives when the pod may be kicked.
func (e *kicked) again() time.Time {
	if e.times == 0 {
		return time.Time{}
	}
	return e.last.Add(min(kickAgain<<min(e.times-1, 10), kickAgainMost))
}

// sweepLocked forgets those that wait no longer, from time to time.
func (k *kicker) sweepLocked(now time.Time) {
	if now.Sub(k.swept) < kickSweep {
		return
	}
	k.swept = now
	for uid := range k.pods {
		t := k.limiter.Lookup(uid)
		if t == nil {
			delete(k.pods, uid)
			continue
		}
		if state, _ := t.Status(); state != throttle.Waiting {
			delete(k.pods, uid)
		}
	}
}
