package informer

import (
	"context"
	"errors"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// Endable is lw for an informer that ends at once when its context does. It changes lw.
//
// Until an informer of client-go has all objects it asks for them by a watch. When the
// connection for that is refused it sleeps, for up to half a minute, and its context does
// not wake it. So here a refused connection is another error, after which it lists; that
// is refused as well, and the sleep that follows ends with the context.
func Endable(lw *cache.ListWatch) *cache.ListWatch {
	watching := lw.WatchFuncWithContext
	lw.WatchFuncWithContext = func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
		w, err := watching(ctx, o)
		if err != nil && o.SendInitialEvents != nil && utilnet.IsConnectionRefused(err) {
			err = errors.New(err.Error()) // not wrapped, so that it is another
		}
		return w, err
	}
	return lw
}
