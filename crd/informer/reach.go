package informer

import (
	"cmp"
	"context"
	"errors"
	"sync"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Reach logs when the API server stops to serve something and when it serves it again;
// the informers try on for ever in between. One Reach can be shared by several informers
// of the same, also one after the other. What is written before the first informer runs
// must not be changed afterwards.
type Reach struct {
	// What is watched, as the log has it: a plural.
	What string
	// Right follows What where the API server answers that this may not be watched: it says
	// which right is missing, and what brings it. May be empty.
	Right string
	// Meanwhile says what goes on while it cannot be watched. Empty: what is in force
	// stays.
	Meanwhile string
	Log       logrus.FieldLogger
	// Refused, if not nil, is called when the API server answers that it does not serve
	// this, or not to us.
	Refused func()
	// Failed, if not nil, is called with every failure. What ends the context, or has the
	// informer list anew as part of every long watch, is none.
	Failed func(error)

	mu    sync.Mutex
	state string // the last that was logged: reachable is empty
}

// The states of a Reach.
const (
	reachable   = ""
	unreachable = "unreachable"
	unknown     = "unknown"
)

// observed is lw with every answer noted. Only a watch shows that all is well: a
// list can succeed where the watch after it is not allowed.
func (r *Reach) observed(lw cache.ListWatch) *cache.ListWatch {
	list, watching := lw.ListWithContextFunc, lw.WatchFuncWithContext
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			found, err := list(ctx, o)
			if err != nil {
				r.failed(ctx, err)
			}
			return found, err
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			w, err := watching(ctx, o)
			switch {
			case err == nil:
				r.served()
			case fallsBack(o, err):
			default:
				r.failed(ctx, err)
			}
			return w, err
		},
	}
}

func (r *Reach) failed(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		// The daemon stops.
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		// The informer lists anew: part of every long watch.
	default:
		r.notServed(err)
		if r.Failed != nil {
			r.Failed(err)
		}
	}
}

// notServed logs why this is not served, once.
func (r *Reach) notServed(err error) {
	switch {
	case apierrors.IsNotFound(err):
		if r.become(unknown) {
			r.Log.WithError(err).Warnf("the API server does not know %s: install its CustomResourceDefinition (kubectl apply -k deploy/crds); trying again until it does", r.What)
		}
		r.tellRefused()
	default:
		what := r.What
		if apierrors.IsForbidden(err) {
			r.tellRefused()
			what += r.Right
		}
		if r.become(unreachable) {
			r.Log.WithError(err).Warnf("cannot watch %s: %s; trying again until it works", what, cmp.Or(r.Meanwhile, "what is in force stays"))
		}
	}
}

// fallsBack is true of the answer of an API server that cannot stream the initial list:
// client-go lists instead, at once.
func fallsBack(o metav1.ListOptions, err error) bool {
	return o.SendInitialEvents != nil && apierrors.IsInvalid(err)
}

func (r *Reach) tellRefused() {
	if r.Refused != nil {
		r.Refused()
	}
}

func (r *Reach) served() {
	if r.become(reachable) {
		r.Log.Infof("watching %s again", r.What)
	}
}

// become tells whether the state is new.
func (r *Reach) become(state string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	isNew := r.state != state
	r.state = state
	return isNew
}
