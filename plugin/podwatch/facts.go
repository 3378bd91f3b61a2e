package podwatch

import (
	"context"
	"math/rand/v2"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
)

// Bounds of the time between two lists that take facts anew.
const (
	retakeFirst = time.Second
	retakeMost  = 30 * time.Second
)

// factTaker takes facts of pods before they are trimmed. Each has its epoch: facts of an earlier one are of no use.
type factTaker struct {
	take   func(*corev1.Pod) startpolicy.Facts // nil: none are taken
	epoch  uint64
	within time.Duration
}

// TakeFacts has the watch take facts of every pod, before it forgets most of the pod; nil: none. Of the pods that it
// knows already it takes them from a list of its own, at a random moment within the given time, so that the nodes of a
// large cluster do not list all at once; functions given to [Watch.OnChange] are told of each. take must be safe for
// concurrent use; where it panics, the pod counts as one that the watch understands nothing of.
func (w *Watch) TakeFacts(take func(*corev1.Pod) startpolicy.Facts, within time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.taker = factTaker{take: take, epoch: w.taker.epoch + 1, within: within}
	if take != nil && len(w.pods) > 0 {
		w.askToRetakeLocked()
	}
}

func (w *Watch) takerNow() factTaker {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.taker
}

// askToRetakeLocked has takeAnew list the pods. w.mu must be held.
func (w *Watch) askToRetakeLocked() {
	select {
	case w.retake <- struct{}{}:
	default: // it will
	}
}

// takeAnew takes the facts of pods that were trimmed before, whenever that is asked for, until ctx ends.
func (w *Watch) takeAnew(ctx context.Context) {
	for {
		select {
		case <-w.retake:
		case <-ctx.Done():
			return
		}
		if within := w.takerNow().within; within > 0 && !pause(ctx, rand.N(within)) {
			return
		}
		for every := retakeFirst; ; every = min(2*every, retakeMost) {
			missing, err := w.retakeAll(ctx)
			if missing == 0 || ctx.Err() != nil {
				break
			}
			w.log.WithField("pods", missing).WithError(err).Debug("facts of pods are not taken yet; trying again")
			// What one node cannot list, others can not either: they shall not all come back at once.
			if !pause(ctx, wait.Jitter(every, 1)) {
				return
			}
		}
	}
}

// pause waits, and reports false when ctx ended before.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// retakeAll lists the pods and takes their facts. It gives how many pods have none yet, by the taker of now.
func (w *Watch) retakeAll(ctx context.Context) (missing int, err error) {
	if missing = w.withoutFacts(); missing == 0 {
		return 0, nil
	}
	if err := eachPod(ctx, w.client, w.node, w.takeFrom); err != nil {
		return missing, err
	}
	return w.withoutFacts(), nil
}

// takeFrom takes the facts of a pod.
func (w *Watch) takeFrom(p *corev1.Pod) error {
	object, err := w.transform(p)
	if err != nil {
		return err
	}
	if c, ok := object.(*cached); ok {
		w.addFacts(c)
	}
	return nil
}

// withoutFacts counts the pods whose facts were not taken by the taker of now.
func (w *Watch) withoutFacts() (n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.taker.take == nil {
		return 0
	}
	for _, c := range w.pods {
		if c.epoch != w.taker.epoch {
			n++
		}
	}
	return n
}

// addFacts puts a pod with its facts in the place of the same version of it without, and tells of it. Any other version
// the watch has, or will get, with facts.
func (w *Watch) addFacts(c *cached) {
	w.telling.Lock()
	defer w.telling.Unlock()
	if w.swap(c) {
		w.tell(c.pod, false)
	}
}

func (w *Watch) swap(c *cached) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	known := w.pods[c.pod.UID]
	if known == nil || !sameName(known, c) || known.ResourceVersion != c.ResourceVersion || known.epoch >= c.epoch {
		return false
	}
	c.heard = known.heard // the watch did not tell of it
	w.pods[c.pod.UID] = c
	return true
}
