package leases

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

const (
	listTimeout = 30 * time.Second
	// A watch ends by itself after this time, and is opened anew where it ended.
	watchSeconds = 600
)

// news is what a watcher tells: one of the fields.
type news struct {
	list    []record
	version uint64 // of the list
	change  *record
	gone    bool
	contact bool // the API server was heard
	err     error
}

var errBadVersion = errors.New("its resourceVersion is no number")

// watcher tells what becomes of the slots.
type watcher struct {
	api  kube.Leases
	tell func(context.Context, news)
}

// run lists and watches until ctx ends; what fails is told, and tried again.
func (w *watcher) run(ctx context.Context) {
	failures := 0
	for ctx.Err() == nil {
		begun := time.Now()
		err := w.follow(ctx)
		if ctx.Err() != nil {
			return
		}
		failures++
		if time.Since(begun) > time.Minute {
			failures = 1
		}
		w.tell(ctx, news{err: err})
		longest := min(mostRetry, leastRetry<<min(failures, 6))
		timer := time.NewTimer(longest/2 + rand.N(longest/2))
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
}

// follow lists the slots and watches them for as long as that can be continued. It
// gives why it cannot.
func (w *watcher) follow(ctx context.Context) error {
	version, err := w.list(ctx)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		if version, err = w.watch(ctx, version); err != nil {
			return err
		}
	}
	return nil
}

func (w *watcher) list(ctx context.Context) (string, error) {
	bounded, cancel := context.WithTimeout(ctx, listTimeout)
	defer cancel()
	// Version 0 is answered from the API server's memory. It may be old: every write
	// names what it saw, and is refused then.
	list, err := w.api.List(bounded, metav1.ListOptions{LabelSelector: SlotLabel, ResourceVersion: "0"})
	if err != nil {
		return "", fmt.Errorf("list the Leases of slots: %w", err)
	}
	n := news{list: []record{}}
	if n.version, err = versionOf(list.ResourceVersion); err != nil {
		return "", fmt.Errorf("list the Leases of slots: %w: %w", errBadVersion, err)
	}
	for i := range list.Items {
		if r, err := readRecord(&list.Items[i]); err == nil {
			n.list = append(n.list, r)
		} else if !errors.Is(err, errNoSlot) {
			return "", err
		}
	}
	w.tell(ctx, n)
	return list.ResourceVersion, nil
}

func (w *watcher) watch(ctx context.Context, version string) (string, error) {
	seconds := int64(watchSeconds + rand.N(watchSeconds/2))
	begun := time.Now()
	stream, err := w.api.Watch(ctx, metav1.ListOptions{
		LabelSelector: SlotLabel, ResourceVersion: version, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	if err != nil {
		return version, fmt.Errorf("watch the Leases of slots: %w", err)
	}
	defer stream.Stop()
	w.tell(ctx, news{contact: true})
	for {
		select {
		case <-ctx.Done():
			return version, nil
		case event, open := <-stream.ResultChan():
			if !open {
				if time.Since(begun) < time.Second {
					return version, errShortWatch
				}
				return version, nil
			}
			if version, err = w.event(ctx, event, version); err != nil {
				return version, fmt.Errorf("watch the Leases of slots: %w", err)
			}
		}
	}
}

var errShortWatch = errors.New("watch the Leases of slots: the API server closes the watch at once")

// event tells of an event of the watch, and gives the version that it leads to.
func (w *watcher) event(ctx context.Context, event watch.Event, version string) (string, error) {
	if event.Type == watch.Error {
		return version, apierrors.FromObject(event.Object)
	}
	lease, ok := event.Object.(*coordinationv1.Lease)
	if !ok {
		return version, fmt.Errorf("%T is no Lease", event.Object)
	}
	if event.Type == watch.Bookmark {
		w.tell(ctx, news{contact: true})
		return lease.ResourceVersion, nil
	}
	r, err := readRecord(lease)
	switch {
	case errors.Is(err, errNoSlot):
	case err != nil:
		return version, err
	default:
		w.tell(ctx, news{change: &r, gone: event.Type == watch.Deleted})
	}
	return lease.ResourceVersion, nil
}
