// Package informer makes informers of client-go that say in the log once, and not at
// every try, that the API server does not serve what they watch, and once that it does
// again.
package informer

import (
	"context"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/cache"
)

// Informer keeps what it watches up to date, and tells a handler of every change. Make
// one with New. Its methods are safe for concurrent use.
type Informer struct {
	shared  cache.SharedIndexInformer
	handler cache.ResourceEventHandlerRegistration
}

// New makes an informer that starts nothing yet, and notes in reach how it goes. client is
// what lw asks; of each object, of the same type as kind, it keeps what trim gives. An
// error means that it cannot be made.
func New(reach *Reach, lw cache.ListWatch, client any, kind runtime.Object,
	trim cache.TransformFunc, handler cache.ResourceEventHandler,
) (i Informer, err error) {
	i.shared = cache.NewSharedIndexInformer(
		cache.ToListWatcherWithWatchListSemantics(Endable(reach.observed(lw)), client), kind, 0, cache.Indexers{})
	if err := i.shared.SetTransform(trim); err != nil {
		return i, err
	}
	// reach has logged the error, once, where client-go would at every try.
	if err := i.shared.SetWatchErrorHandlerWithContext(func(context.Context, *cache.Reflector, error) {}); err != nil {
		return i, err
	}
	i.handler, err = i.shared.AddEventHandler(handler)
	return i, err
}

// Run watches until ctx ends. It is to be called once.
func (i Informer) Run(ctx context.Context) { i.shared.RunWithContext(ctx) }

// Synced is closed once the handler was told of all that there was at first.
func (i Informer) Synced() <-chan struct{} { return i.handler.HasSyncedChecker().Done() }
