package podwatch

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/util/watchlist"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// eachPodSeconds bounds one such look at the pods.
const eachPodSeconds = 60

var errCutShort = errors.New("the API server ended the list before it was complete")

// eachPod calls f with every pod of the node, one after the other, as the API server has them in its memory
// (resourceVersion 0): many nodes may ask at a time, and the version of a pod is compared anyway. They come as a stream, so that pods of
// any size take no more memory than one of them; in one list where the server cannot do that.
func eachPod(ctx context.Context, client kube.Interface, node string, f func(*corev1.Pod) error) error {
	pods, selector := client.Pods(metav1.NamespaceAll), fields.OneTermEqualSelector("spec.nodeName", node).String()
	if !watchlist.DoesClientNotSupportWatchListSemantics(client) {
		yes, seconds := true, int64(eachPodSeconds)
		stream, err := pods.Watch(ctx, metav1.ListOptions{
			FieldSelector: selector, ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
			SendInitialEvents: &yes, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
		})
		if err == nil {
			return eachOf(stream, f)
		}
		if !apierrors.IsInvalid(err) {
			return fmt.Errorf("list pods: %w", err)
		}
	}
	list, err := pods.List(ctx, metav1.ListOptions{FieldSelector: selector, ResourceVersion: "0"})
	if err != nil {
		return fmt.Errorf("list pods: %w", err)
	}
	for i := range list.Items {
		if err := f(&list.Items[i]); err != nil {
			return err
		}
	}
	return nil
}

// eachOf reads the pods of a stream until the list is complete.
func eachOf(stream watch.Interface, f func(*corev1.Pod) error) error {
	defer stream.Stop()
	for event := range stream.ResultChan() {
		pod, isPod := event.Object.(*corev1.Pod)
		switch {
		case event.Type == watch.Error:
			return fmt.Errorf("list pods: %w", apierrors.FromObject(event.Object))
		case event.Type == watch.Bookmark && isPod && pod.Annotations[metav1.InitialEventsAnnotationKey] == "true":
			return nil
		case isPod && (event.Type == watch.Added || event.Type == watch.Modified):
			if err := f(pod); err != nil {
				return err
			}
		}
	}
	return errCutShort
}
