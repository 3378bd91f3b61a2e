package informer

import (
	"cmp"
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// Current reports whether the known objects are up to date. It is false before the first list is complete, from a
// failed list or watch until the next watch is connected, from Distrust until the next list is complete, and after Run.
// The end of a watch, which the API server closes every few minutes, is not a failure, even if it ends at once or with
// an error: the objects are then listed again, within a minute. client-go takes 45 s to notice a connection that died
// silently.
func (i *Informer[T]) Current() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.connected && !i.distrust
}

// Distrust reports that the watch missed a change, which why describes. Current is false until the objects are listed
// again from the newest state. Distrust does not begin that list: call Relist.
func (i *Informer[T]) Distrust(why error) {
	i.mu.Lock()
	i.distrust = true
	i.mu.Unlock()
	i.warn(why, i.options.What+" are listed again")
}

// fail records a failed request. The next list may have any version: the API server may have been restored from a
// backup.
func (i *Informer[T]) fail(ctx context.Context, err error) {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) {
		return // Run ends, or Relist was called
	}
	i.mu.Lock()
	i.connected, i.version = false, ""
	i.mu.Unlock()
	switch {
	case apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		return // a long watch ends this way, and the objects are listed again
	case apierrors.IsNotFound(err):
		i.warn(err, "the API server does not know "+i.options.What+": install its CustomResourceDefinition (kubectl apply -k deploy/crds); trying again until it does")
	case apierrors.IsForbidden(err):
		remedy := cmp.Or(i.options.Remedy, "give the daemon's user the roles in deploy/base/rbac.yaml")
		i.warn(err, "not allowed to watch "+i.options.What+": "+remedy+"; using the last known objects; trying again until it works")
	default:
		i.warn(err, "cannot watch "+i.options.What+": using the last known objects; trying again until it works")
	}
	if i.options.Refused != nil && (apierrors.IsNotFound(err) || apierrors.IsForbidden(err)) {
		i.options.Refused()
	}
}

// works records that a watch is connected after a complete list. A complete list alone is not enough, because the
// watch after it may be forbidden.
func (i *Informer[T]) works() {
	i.mu.Lock()
	i.connected = true
	distrusted := i.distrust
	i.mu.Unlock()
	if !distrusted && i.faults.Changed("") {
		i.options.Log.Infof("watching %s again", i.options.What)
	}
}

// listed records that the list is complete.
func (i *Informer[T]) listed() {
	i.mu.Lock()
	i.distrust, i.completed, i.version = false, i.began, ""
	streams := i.streams
	i.mu.Unlock()
	if streams {
		i.works()
	}
}

// Listed returns when the last complete list began. It is zero before the first.
func (i *Informer[T]) Listed() time.Time {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.completed
}

// warn logs a fault if the last one was another.
func (i *Informer[T]) warn(err error, fault string) {
	if i.faults.Changed(fault) {
		i.options.Log.WithError(err).Warn(fault)
	}
}
