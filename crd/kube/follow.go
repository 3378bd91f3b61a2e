package kube

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/gentype"
)

type object[T any] interface {
	*T
	runtime.Object
	metav1.Object
}

// kind is the client of one kind.
type kind[T any, O object[T], L runtime.Object] struct {
	*gentype.ClientWithList[O, L]
	resource string
}

// Each implements [Follow]. It holds one object at a time, however long the list is. A limit of the request would not do:
// the API server ignores it if it answers from its memory, and otherwise reads the objects of all nodes from etcd for
// the pods of one.
func (k kind[T, O, L]) Each(ctx context.Context, opts metav1.ListOptions, f func(runtime.Object)) (version string, err error) {
	body, err := k.GetClient().Get().NamespaceIfScoped(k.GetNamespace(), k.GetNamespace() != "").Resource(k.resource).
		VersionedParams(&opts, parameters).SetHeader("Accept", runtime.ContentTypeJSON).Stream(ctx)
	if err != nil {
		return "", err
	}
	defer body.Close()
	version, err = eachItem(json.NewDecoder(body), func(item *T) { f(O(item)) })
	if err != nil {
		return "", fmt.Errorf("list of %s: %w", k.resource, err)
	}
	return version, nil
}

// eachItem reads a list in the JSON form of the API server, calls f for each item, and returns the list's version.
func eachItem[T any](from *json.Decoder, f func(*T)) (version string, err error) {
	var list metav1.ListMeta
	_, err = from.Token() // {
	for err == nil && from.More() {
		var key json.Token
		if key, err = from.Token(); err != nil {
			break
		}
		switch key {
		case "metadata":
			err = from.Decode(&list)
		case "items":
			err = eachElement(from, f)
		default:
			err = from.Decode(new(json.RawMessage))
		}
	}
	if err == nil {
		_, err = from.Token() // }, or an error if the list was cut off
	}
	if err == nil && list.ResourceVersion == "" {
		err = errors.New("it has no version")
	}
	return list.ResourceVersion, err
}

func eachElement[T any](from *json.Decoder, f func(*T)) error {
	if opens, err := from.Token(); opens == nil { // null
		return err
	}
	for from.More() {
		item := new(T)
		if err := from.Decode(item); err != nil {
			return err
		}
		f(item)
	}
	_, err := from.Token() // ]
	return err
}

// Lists are the methods of client-go's clients that list and watch objects. L is the type of the list.
type Lists[L runtime.Object] interface {
	List[L]
	Watch(ctx context.Context, opts metav1.ListOptions) (watch.Interface, error)
}

// Whole returns a Follow that reads each list of api as a whole.
func Whole[L runtime.Object](api Lists[L]) Follow { return whole[L]{api} }

type whole[L runtime.Object] struct{ Lists[L] }

// Each implements [Follow].
func (w whole[L]) Each(ctx context.Context, opts metav1.ListOptions, f func(runtime.Object)) (version string, err error) {
	list, err := w.List(ctx, opts)
	if err != nil {
		return "", err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return "", err
	}
	return m.GetResourceVersion(), meta.EachListItem(list, func(o runtime.Object) error {
		f(o)
		return nil
	})
}
