package herdpage

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

func at(second int) time.Time { return noon.Add(time.Duration(second) * time.Second) }

func stamp(second int) metav1.Time { return metav1.NewTime(at(second)) }

func pod(name string, accepted int, change func(*corev1.PodStatus)) corev1.Pod {
	p := corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, CreationTimestamp: stamp(accepted - 1)}}
	p.Status.StartTime = new(stamp(accepted))
	change(&p.Status)
	return p
}

func running(since int) corev1.ContainerState {
	return corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: stamp(since)}}
}

func exited(from, to int) corev1.ContainerState {
	return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: stamp(from), FinishedAt: stamp(to)}}
}

func readySince(second int) []corev1.PodCondition {
	return []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue, LastTransitionTime: stamp(second)}}
}

func TestRowsTellWhatKubeletReports(t *testing.T) {
	t.Parallel()
	rows := Rows([]corev1.Pod{
		pod("waits", 3, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{}}}}
		}),
		pod("ready", 0, func(s *corev1.PodStatus) {
			s.InitContainerStatuses = []corev1.ContainerStatus{{State: exited(10, 12)}}
			s.ContainerStatuses = []corev1.ContainerStatus{{State: running(13)}}
			s.Conditions = readySince(20)
		}),
		pod("restarted", 1, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{State: running(40), LastTerminationState: exited(15, 30), RestartCount: 1}}
		}),
		pod("done", 2, func(s *corev1.PodStatus) {
			s.Phase = corev1.PodSucceeded
			s.ContainerStatuses = []corev1.ContainerStatus{{State: exited(5, 6)}, {State: exited(5, 9)}}
		}),
		pod("long-ready", -3600, func(s *corev1.PodStatus) {
			s.ContainerStatuses = []corev1.ContainerStatus{{State: running(-3599)}}
			s.Conditions = readySince(-3590)
		}),
		pod("long-done", -3600, func(s *corev1.PodStatus) {
			s.Phase = corev1.PodFailed
			s.ContainerStatuses = []corev1.ContainerStatus{{State: exited(-3599, -3590)}}
		}),
	}, at(60))
	assert.Equal(t, []Row{
		{Namespace: "shop", Name: "ready", Accepted: at(0), Started: at(10), Ready: at(20)},
		{Namespace: "shop", Name: "restarted", Accepted: at(1), Started: at(15), Restarts: 1},
		{Namespace: "shop", Name: "done", Accepted: at(2), Started: at(5), Ended: at(9)},
		{Namespace: "shop", Name: "waits", Accepted: at(3)},
	}, rows)
}

// kubelet reports no container of a pod that it has rejected, such as one that the node has no room for.
func TestARejectedPodDoesNotWait(t *testing.T) {
	t.Parallel()
	rejected := func(name string, accepted int) corev1.Pod {
		return pod(name, accepted, func(s *corev1.PodStatus) { s.Phase = corev1.PodFailed })
	}
	rows := Rows([]corev1.Pod{rejected("long-rejected", -3600), rejected("rejected", 0)}, at(60))
	assert.Equal(t, []Row{{Namespace: "shop", Name: "rejected", Accepted: at(0), Ended: at(0)}}, rows)
}

func TestTheLatestRowsAreShown(t *testing.T) {
	t.Parallel()
	var pods []corev1.Pod
	for i := range most + 5 {
		pods = append(pods, pod(fmt.Sprint("web-", i), i, func(*corev1.PodStatus) {}))
	}
	rows := Rows(pods, at(60))
	require.Len(t, rows, most)
	assert.Equal(t, "web-5", rows[0].Name)
}

func TestOnlyTheKeyOpensThePage(t *testing.T) {
	t.Parallel()
	daemon := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "the daemon's "+r.URL.Path)
	}))
	t.Cleanup(daemon.Close)
	address, err := url.Parse(daemon.URL)
	require.NoError(t, err)
	fault := error(nil)
	own := httptest.NewServer(Handler(address, "secret", func(context.Context) ([]Row, error) {
		return []Row{{Namespace: "shop", Name: "web-0", Accepted: noon}}, fault
	}))
	t.Cleanup(own.Close)
	get := func(path string) (int, string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, own.URL+path, http.NoBody)
		require.NoError(t, err)
		client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
		reply, err := client.Do(request)
		require.NoError(t, err)
		defer reply.Body.Close()
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		return reply.StatusCode, string(body)
	}
	for _, path := range []string{"/", "/pods.json", "/status.json", "/wrong/pods.json", "/secretly/pods.json"} {
		code, body := get(path)
		assert.Equal(t, http.StatusNotFound, code, path)
		assert.NotContains(t, body, "web-0")
	}
	code, body := get("/secret/pods.json")
	assert.Equal(t, http.StatusOK, code)
	assert.JSONEq(t, `[{"namespace":"shop","name":"web-0","accepted":"2026-01-02T12:00:00Z"}]`, body)
	_, body = get("/secret/status.json")
	assert.Equal(t, "the daemon's /status.json", body)
	_, body = get("/secret/?pods")
	assert.Equal(t, "the daemon's /", body)
	fault = errors.New("pods is forbidden")
	code, body = get("/secret/pods.json")
	assert.Equal(t, http.StatusBadGateway, code)
	assert.Contains(t, body, "pods is forbidden")
	http.DefaultClient.CloseIdleConnections() // idle connections of the proxy
}
