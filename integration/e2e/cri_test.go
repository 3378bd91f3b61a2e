//go:build e2e

package e2e

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// container is a container as containerd reports it. A time is zero until it is reached.
type container struct {
	pod, name                  string
	created, started, finished time.Time
	// guessed: the container ended when containerd was killed, which on its return noted the present time as the end
	// (loadContainer in its internal/cri/server/restart.go).
	guessed bool
}

// containers returns all containers of a namespace from containerd, in the order of their starts.
func containers(t *testing.T, ns string) (all []container) {
	t.Helper()
	for _, c := range listed(t, ns) {
		known, err := statusOf(t.Context(), c)
		require.NoError(t, err)
		all = append(all, known)
	}
	slices.SortFunc(all, func(a, b container) int { return cmp.Or(a.started.Compare(b.started), a.created.Compare(b.created)) })
	return all
}

// statusOf returns the details of a listed container.
func statusOf(ctx context.Context, c *runtimeapi.Container) (container, error) {
	reply, err := node.CRI().ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.Id})
	if err != nil {
		return container{}, fmt.Errorf("status of a container: %w", err)
	}
	s := reply.Status
	return container{
		pod: c.Labels["io.kubernetes.pod.name"], name: s.Metadata.Name,
		created: nanoseconds(s.CreatedAt), started: nanoseconds(s.StartedAt), finished: nanoseconds(s.FinishedAt),
		guessed: s.Reason == "Unknown",
	}, nil
}

func listContainers(ctx context.Context, ns string) ([]*runtimeapi.Container, error) {
	reply, err := node.CRI().ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.namespace": ns},
	}})
	if err != nil {
		return nil, fmt.Errorf("list of the containers: %w", err)
	}
	return reply.Containers, nil
}

func listed(t *testing.T, ns string) []*runtimeapi.Container {
	t.Helper()
	all, err := listContainers(t.Context(), ns)
	require.NoError(t, err)
	return all
}

// nanoseconds converts a time field of CRI, where 0 means none.
func nanoseconds(n int64) time.Time {
	if n == 0 {
		return time.Time{}
	}
	return time.Unix(0, n)
}

// begun returns the pods of a namespace with a started container, sorted by name.
func begun(t *testing.T, ns string) (names []string) {
	t.Helper()
	for _, c := range listed(t, ns) {
		if c.State != runtimeapi.ContainerState_CONTAINER_CREATED {
			names = append(names, c.Labels["io.kubernetes.pod.name"])
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// begunOf counts the pods of begun with that name prefix.
func begunOf(t *testing.T, ns, prefix string) (n int) {
	t.Helper()
	for _, name := range begun(t, ns) {
		if strings.HasPrefix(name, prefix) {
			n++
		}
	}
	return n
}

// created reports whether containerd has a container of the pod that was not started.
func created(t *testing.T, ns, pod string) bool {
	t.Helper()
	return slices.ContainsFunc(listed(t, ns), func(c *runtimeapi.Container) bool {
		return c.Labels["io.kubernetes.pod.name"] == pod && c.State == runtimeapi.ContainerState_CONTAINER_CREATED
	})
}

// wholeStarts returns the starts of pods with several containers, from the start of the first
// container, init containers included, to ready.
func wholeStarts(t *testing.T, ns string) (all []life) {
	t.Helper()
	return startsFrom(t, ns, "")
}

// startsFrom is wholeStarts from the start of the first container of a name; empty: of any.
func startsFrom(t *testing.T, ns, name string) (all []life) {
	t.Helper()
	first, ready := map[string]container{}, kubeletReady(t, ns, time.Time{})
	for _, c := range containers(t, ns) {
		if _, earlier := first[c.pod]; !earlier && !c.started.IsZero() && (name == "" || c.name == name) {
			first[c.pod] = c
		}
	}
	for _, pod := range pods(t, ns) {
		c := first[pod.Name]
		all = append(all, life{pod: pod, created: c.created, started: c.started, ready: ready[pod.Name]})
	}
	slices.SortFunc(all, func(a, b life) int { return a.started.Compare(b.started) })
	return all
}

// assertNotRefused checks that kubelet reports no failure to create or start a container of a
// namespace. It reports one for each refused container.
func assertNotRefused(t *testing.T, ns string) {
	t.Helper()
	events, err := node.Client().CoreV1().Events(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "type=" + corev1.EventTypeWarning})
	require.NoError(t, err)
	for _, e := range events.Items {
		assert.NotContains(t, []string{"Failed", "BackOff", "FailedCreatePodSandBox"}, e.Reason, "%s: %s", e.InvolvedObject.Name, e.Message)
	}
}
