package informer

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
)

// refusedAfter is how long the API server must refuse before Refused is called: that is the fourth try, 5 to 12 s after the
// first. An API server that has just started forbids everything until it knows its roles, and does not know a
// CustomResourceDefinition yet.
const refusedAfter = 5 * time.Second

// Fault is why objects cannot be read.
type Fault struct {
	What  string    // Options.What
	Since time.Time // when it was found
	Err   error     // of the last try
	says  string    // in the log
}

// Fault returns why the objects cannot be read now; nil if they can be, or if nothing is known yet. The caller must not
// change it.
func (i *Informer[T]) Fault() *Fault { return i.fault.Load() }

// Current reports whether the known objects are up to date. It is false before the first list is complete, from the end
// of a watch before its time and from a failed request until the objects are listed and watched again, and after Run.
// client-go takes 45 s to notice a connection that died silently.
func (i *Informer[T]) Current() bool { return i.current.Load() }

// CurrentSince reports whether the known objects are up to date, or were after the time t.
func (i *Informer[T]) CurrentSince(t time.Time) bool {
	if i.current.Load() {
		return true
	}
	lost := i.lost.Load()
	return lost != nil && lost.After(t)
}

// Listed reports whether the objects were listed once.
func (i *Informer[T]) Listed() bool { return i.listed.Load() }

// fail records why the objects are no longer followed.
func (i *Informer[T]) fail(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return // Run ends, or Relist was called
	}
	if i.current.Load() {
		now := time.Now()
		i.lost.Store(&now)
		i.current.Store(false)
	}
	switch {
	case errors.Is(err, errBroken), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return // they are listed again
	case apierrors.IsNotFound(err) && i.isCustom():
		i.warn(err, "the API server does not know "+i.options.What+": install its CustomResourceDefinition (kubectl apply -k deploy/crds); trying again until it does")
	case apierrors.IsForbidden(err):
		remedy := cmp.Or(i.options.Remedy, "give the daemon's user the roles in deploy/base/rbac.yaml")
		i.warn(err, "not allowed to watch "+i.options.What+": "+remedy+"; using the last known objects; trying again until it works")
	default:
		i.warn(err, "cannot watch "+i.options.What+": using the last known objects; trying again until it works")
	}
	refused := apierrors.IsNotFound(err) && i.isCustom() || apierrors.IsForbidden(err)
	if i.options.Refused != nil && refused && time.Since(i.fault.Load().Since) >= refusedAfter {
		i.options.Refused()
	}
}

// isCustom reports whether the objects are custom resources.
func (i *Informer[T]) isCustom() bool {
	_, is := i.options.Kind.(runtime.Unstructured)
	return is
}

// works records that a watch is connected after a complete list. A complete list alone is not enough, because the
// watch after it may be forbidden.
func (i *Informer[T]) works() {
	i.current.Store(true)
	if i.fault.Swap(nil) != nil {
		i.options.Log.Infof("watching %s again", i.options.What)
	}
}

// warn keeps a fault, and logs it if the last one was another.
func (i *Informer[T]) warn(err error, fault string) {
	now := &Fault{What: i.options.What, Since: time.Now(), Err: err, says: fault}
	if last := i.fault.Load(); last != nil && last.says == fault {
		now.Since = last.Since
	} else {
		i.options.Log.WithError(err).Warn(fault)
	}
	i.fault.Store(now)
}
