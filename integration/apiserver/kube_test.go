//go:build e2e

package apiserver

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
)

// The daemon's own client and the API server understand each other in both encodings.
func TestDaemonClientAgreesWithTheAPIServer(t *testing.T) {
	for _, encoding := range []string{runtime.ContentTypeProtobuf, runtime.ContentTypeJSON} {
		config := rest.CopyConfig(access)
		config.ContentType = encoding
		client, err := kube.New(config)
		require.NoError(t, err)
		ctx := t.Context()
		leases, name := client.Leases("default"), "own"
		made, err := leases.Create(ctx, &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		require.NoError(t, err)
		made.Spec.HolderIdentity = &name
		made, err = leases.Update(ctx, made, metav1.UpdateOptions{})
		require.NoError(t, err)
		// At version 0 the server may answer with an object from before the update.
		read, err := leases.Get(ctx, name, metav1.GetOptions{ResourceVersion: made.ResourceVersion})
		require.NoError(t, err)
		assert.Equal(t, name, *read.Spec.HolderIdentity)
		list, err := leases.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + name})
		require.NoError(t, err)
		assert.Len(t, list.Items, 1)
		_, err = leases.Create(ctx, made, metav1.CreateOptions{})
		require.Error(t, err, "an object with a version cannot be created")
		wrong := types.UID("another")
		err = leases.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &wrong}})
		assert.True(t, apierrors.IsConflict(err), "%v", err)
		require.NoError(t, leases.Delete(ctx, name, metav1.DeleteOptions{}))

		_, err = client.Events("default").Create(ctx, &corev1.Event{
			ObjectMeta: metav1.ObjectMeta{Name: name}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: "default", Name: "x"}, Count: 1,
		}, metav1.CreateOptions{})
		require.NoError(t, err)
		event, err := client.Events("default").Patch(ctx, name, types.StrategicMergePatchType, []byte(`{"count":2}`), metav1.PatchOptions{})
		require.NoError(t, err)
		assert.EqualValues(t, 2, event.Count)
		event.Message = "text"
		_, err = client.Events("default").Update(ctx, event, metav1.UpdateOptions{})
		require.NoError(t, err)
		require.NoError(t, deleteEvent(t, name))

		var spaces []string
		version, err := client.Namespaces().Each(ctx, metav1.ListOptions{FieldSelector: "metadata.name=default"}, func(o runtime.Object) {
			space, _ := o.(*corev1.Namespace)
			spaces = append(spaces, space.GetName())
		})
		require.NoError(t, err)
		assert.NotEmpty(t, version)
		assert.Equal(t, []string{"default"}, spaces)
		_, err = client.DaemonSets("default").Get(ctx, "none", metav1.GetOptions{})
		assert.True(t, apierrors.IsNotFound(err) && !apierrors.IsUnexpectedServerError(err), "%v", err)
		_, err = client.Nodes().Patch(ctx, "none", types.MergePatchType, []byte("{}"), metav1.PatchOptions{})
		assert.True(t, apierrors.IsNotFound(err), "%v", err)
		assertStreams(t, client)
	}
}

func deleteEvent(t *testing.T, name string) error {
	t.Helper()
	return api.Resource(corev1.SchemeGroupVersion.WithResource("events")).Namespace("default").Delete(t.Context(), name, metav1.DeleteOptions{})
}

// assertStreams reads an empty initial list of pods as a stream, as the pod watch does.
func assertStreams(t *testing.T, client kube.Interface) {
	t.Helper()
	yes := true
	stream, err := client.Pods("").Watch(t.Context(), metav1.ListOptions{
		FieldSelector: "spec.nodeName=none", ResourceVersion: "0", ResourceVersionMatch: metav1.ResourceVersionMatchNotOlderThan,
		SendInitialEvents: &yes, AllowWatchBookmarks: true,
	})
	require.NoError(t, err)
	defer stream.Stop()
	event := <-stream.ResultChan()
	require.Equal(t, watch.Bookmark, event.Type, "%v", event.Object)
	pod, ok := event.Object.(*corev1.Pod)
	require.True(t, ok)
	assert.Equal(t, "true", pod.Annotations[metav1.InitialEventsAnnotationKey])
}
