package kube

import (
	"context"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
)

// object is what a resource is made of.
type object interface {
	runtime.Object
	GetName() string
}

// resource makes the requests for objects of one kind, as client-go's typed clients do.
type resource[T object, L runtime.Object] struct {
	api             rest.Interface
	name, namespace string
	one             func() T
	list            func() L
}

// to begins a request.
func (r resource[T, L]) to(request *rest.Request) *rest.Request {
	return request.NamespaceIfScoped(r.namespace, r.namespace != "").Resource(r.name)
}

// timeout returns how long the API server may take, as opts say.
func timeout(opts metav1.ListOptions) time.Duration {
	if opts.TimeoutSeconds == nil {
		return 0
	}
	return time.Duration(*opts.TimeoutSeconds) * time.Second
}

func (r resource[T, L]) Get(ctx context.Context, name string, opts metav1.GetOptions) (T, error) {
	into := r.one()
	err := r.to(r.api.Get()).Name(name).VersionedParams(&opts, parameters).Do(ctx).Into(into)
	return into, err
}

func (r resource[T, L]) List(ctx context.Context, opts metav1.ListOptions) (L, error) {
	into := r.list()
	err := r.to(r.api.Get()).VersionedParams(&opts, parameters).Timeout(timeout(opts)).Do(ctx).Into(into)
	return into, err
}

func (r resource[T, L]) Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error) {
	opts.Watch = true
	return r.to(r.api.Get()).VersionedParams(&opts, parameters).Timeout(timeout(opts)).Watch(ctx)
}

func (r resource[T, L]) Create(ctx context.Context, object T, opts metav1.CreateOptions) (T, error) {
	into := r.one()
	err := r.to(r.api.Post()).VersionedParams(&opts, parameters).Body(object).Do(ctx).Into(into)
	return into, err
}

func (r resource[T, L]) Update(ctx context.Context, object T, opts metav1.UpdateOptions) (T, error) {
	into := r.one()
	err := r.to(r.api.Put()).Name(object.GetName()).VersionedParams(&opts, parameters).Body(object).Do(ctx).Into(into)
	return into, err
}

func (r resource[T, L]) Patch(ctx context.Context, name string, pt types.PatchType, data []byte, opts metav1.PatchOptions, subresources ...string) (T, error) {
	into := r.one()
	err := r.to(r.api.Patch(pt)).Name(name).SubResource(subresources...).VersionedParams(&opts, parameters).Body(data).Do(ctx).Into(into)
	return into, err
}

func (r resource[T, L]) Delete(ctx context.Context, name string, opts metav1.DeleteOptions) error {
	return r.to(r.api.Delete()).Name(name).Body(&opts).Do(ctx).Error()
}
