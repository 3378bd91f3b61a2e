package crd

import (
	"context"
	"errors"
	"sync"

	"github.com/sirupsen/logrus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/cache"
)

// reach logs when the API server stops to serve something and when it serves it
// again; the informer tries on for ever in between.
type reach struct {
	what string
	log  logrus.FieldLogger
	// refused is called when the API server answers that it does not serve this, or
	// not to us.
	refused func()

	mu    sync.Mutex
	state string // the last that was logged: reachable is empty
}

// The states of a reach.
const (
	reachable   = ""
	unreachable = "unreachable"
	notServed   = "not served"
)

// listWatch lists and watches all objects of one kind.
func listWatch(api dynamic.ResourceInterface) cache.ListWatch {
	return cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			return api.List(ctx, o)
		},
		WatchFuncWithContext: api.Watch,
	}
}

// observed is lw with every answer noted. Only a watch shows that all is well: a
// list can succeed where the watch after it is not allowed.
func (r *reach) observed(lw cache.ListWatch) *cache.ListWatch {
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
			if err != nil {
				r.failed(ctx, err)
			} else {
				r.served()
			}
			return w, err
		},
	}
}

func (r *reach) failed(ctx context.Context, err error) {
	switch {
	case ctx.Err() != nil, errors.Is(err, context.Canceled):
		// The daemon stops.
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		// The informer lists anew: part of every long watch.
	case apierrors.IsNotFound(err):
		if r.become(notServed) {
			r.log.WithError(err).Warnf("the API server does not know %s: install its CustomResourceDefinition (deploy/crds); trying again until it does", r.what)
		}
		r.refused()
	default:
		if apierrors.IsForbidden(err) {
			r.refused()
		}
		if r.become(unreachable) {
			r.log.WithError(err).Warnf("cannot watch %s: what is in force stays; trying again until it works", r.what)
		}
	}
}

func (r *reach) served() {
	if r.become(reachable) {
		r.log.Infof("watching %s again", r.what)
	}
}

// become tells whether the state is new.
func (r *reach) become(state string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	isNew := r.state != state
	r.state = state
	return isNew
}
