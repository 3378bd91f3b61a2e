package plugin

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

const (
	kickTimeout = 5 * time.Second // of one call of the API server
	kickWorkers = 2
	// kickTries is how often a kick is tried that collides with somebody else's write of the
	// pod, with kickPause between two tries.
	kickTries = 3
	kickPause = 200 * time.Millisecond
	// mostQueuedKicks bounds the kicks that wait for the API server.
	mostQueuedKicks = 64
)

var errKicksQueued = fmt.Errorf("%d kicks wait for the API server already", mostQueuedKicks)

// sendLocked has a kick done beside what goes on, where that can be.
func (k *kicker) sendLocked(one kick) {
	select {
	case k.queue <- one:
	default:
		k.tell(one, errKicksQueued)
	}
}

// run asks the API server for the kicks until ctx ends.
func (k *kicker) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	for range kickWorkers {
		g.Go(func() error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case one := <-k.queue:
					k.do(ctx, one)
				}
			}
		})
	}
	return g.Wait()
}

// do kicks one pod; another pod of the same name is left alone.
func (k *kicker) do(ctx context.Context, one kick) {
	ctx, cancel := context.WithTimeout(ctx, kickTimeout)
	defer cancel()
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid":         one.uid,
		"annotations": map[string]string{TurnAnnotation: one.turn.UTC().Format(time.RFC3339Nano)},
	}})
	if err == nil {
		err = k.try(ctx, one, patch)
	}
	k.tell(one, err)
}

// try patches a pod, again where somebody else writes it in the same moment.
func (k *kicker) try(ctx context.Context, one kick, patch []byte) error {
	namespace, name := splitTitle(one.title)
	for tries := 1; ; tries++ {
		err := k.patch(ctx, namespace, name, patch)
		if !apierrors.IsConflict(err) || tries == kickTries {
			return err
		}
		select {
		case <-time.After(kickPause):
		case <-ctx.Done():
			return err
		}
	}
}

// count gives how many kicks went well.
func (k *kicker) count() uint64 {
	if k == nil {
		return 0
	}
	return k.done.Load()
}

// tell says how a kick went. The pod comes back by itself where it went wrong.
func (k *kicker) tell(one kick, err error) {
	log := k.log.WithFields(logrus.Fields{"pod": one.title, "pod_uid": one.uid})
	if err == nil || apierrors.IsNotFound(err) {
		k.metrics.kicks.WithLabelValues("done").Inc()
		k.done.Add(1)
		log.Debug("kicked: kubelet comes back to it at once")
		return
	}
	k.metrics.kicks.WithLabelValues("failed").Inc()
	if !k.warned.now(time.Now(), err) {
		return
	}
	log = log.WithError(err)
	if apierrors.IsForbidden(err) {
		log.Error("pods are not kicked, and start up to 15 s after their turn: the daemon may not patch them; kick.enabled of the chart brings the permission")
		return
	}
	log.Warn("a pod was not kicked: kubelet comes back to it by itself")
}

// remind bounds how often the same is said. The zero value is ready; safe for
// concurrent use.
type remind struct {
	mu   sync.Mutex
	what string
	at   time.Time
}

// now tells whether to say it: it is new, or was said long ago.
func (r *remind) now(now time.Time, err error) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	what := string(apierrors.ReasonForError(err))
	if what == r.what && !r.at.IsZero() && now.Sub(r.at) < remindEvery {
		return false
	}
	r.what, r.at = what, now
	return true
}
