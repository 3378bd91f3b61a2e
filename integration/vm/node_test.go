//go:build vm

package vm

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// sh runs a command in the guest, also during a test's cleanup.
func sh(t *testing.T, format string, args ...any) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), testTimeout)
	defer cancel()
	out, err := guest.Run(ctx, fmt.Sprintf(format, args...))
	require.NoError(t, err)
	return out
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	err := soon(context.WithoutCancel(t.Context()), func() error {
		if holds() {
			return nil
		}
		return errors.New("not yet")
	})
	if err != nil {
		logGuest(t)
		require.NoError(t, err, "the time ran out before this was true: "+what)
	}
}

// logGuest logs the state of the guest of a failed test.
func logGuest(t *testing.T) {
	t.Helper()
	for _, command := range []string{
		"systemctl --no-pager --failed; systemctl --no-pager status pod-pacemaker",
		"journalctl -b --no-pager -o short-monotonic -u pod-pacemaker | tail -n 150",
		"journalctl -b --no-pager -o short-monotonic -u containerd -p warning | tail -n 40",
		"journalctl -b --no-pager -o short-monotonic -u kubelet | grep -v 'SyncLoop' | tail -n 60",
	} {
		out, err := guest.Run(context.Background(), command)
		t.Logf("%s: %v\n%s", command, err, out)
	}
	out, err := server.Kubectl(context.Background(), "get", "pods,events", "-o", "wide")
	t.Logf("%v\n%s", err, out)
}

// get requests a path of an HTTP server of the guest.
func get(ctx context.Context, network, address, path string) ([]byte, error) {
	client := http.Client{Transport: &http.Transport{
		DialContext:       func(ctx context.Context, _, _ string) (net.Conn, error) { return guest.Dial(ctx, network, address) },
		DisableKeepAlives: true,
	}}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://guest"+path, nil)
	if err != nil {
		return nil, err
	}
	reply, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	return io.ReadAll(reply.Body)
}

// askStatus asks for the daemon's status, at the socket that the command status uses.
func askStatus(ctx context.Context) (s admin.Status, err error) {
	text, err := get(ctx, "unix", "/run/pod-pacemaker/admin.sock", "/v1/status")
	if err != nil {
		return s, err
	}
	err = json.Unmarshal(text, &s)
	return s, err
}

func status(t *testing.T) admin.Status {
	t.Helper()
	s, err := askStatus(context.WithoutCancel(t.Context()))
	require.NoError(t, err)
	return s
}

// paces waits until the daemon paces pods.
func paces(t *testing.T) {
	t.Helper()
	eventually(t, "the daemon paces pods", func() bool {
		s, err := askStatus(context.WithoutCancel(t.Context()))
		return err == nil && s.Ready && s.Gate.WhyNot != "the hook is being installed"
	})
}

// arguments restarts the daemon's unit with other EXTRA_ARGS until the test ends.
func arguments(t *testing.T, args string) {
	t.Helper()
	const file = "/etc/default/pod-pacemaker"
	before := sh(t, "cat %s", file)
	set := func(text string) error {
		if err := guest.Write(context.Background(), file, text); err != nil {
			return err
		}
		_, err := guest.Run(context.Background(), "systemctl restart pod-pacemaker")
		return err
	}
	t.Cleanup(func() { assert.NoError(t, set(before)) })
	require.NoError(t, set("EXTRA_ARGS="+args))
	paces(t)
}

// A shape changes a pod.
type shape func(*corev1.PodSpec)

// herdPod is a pod that burns CPU-seconds of the guest before it answers its readiness probe.
func herdPod(cpuSeconds float64, shapes ...shape) corev1.PodSpec {
	grace, off := int64(1), false
	spec := corev1.PodSpec{
		NodeName:                      lab.DefaultNodeName,
		TerminationGracePeriodSeconds: &grace, AutomountServiceAccountToken: &off, EnableServiceLinks: &off,
		Containers: []corev1.Container{{
			Name: "app", Image: lab.HerdImage, ImagePullPolicy: corev1.PullNever,
			Args: []string{"--cpu-seconds", fmt.Sprint(cpuSeconds)},
			ReadinessProbe: &corev1.Probe{
				ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: "/", Port: intstr.FromInt32(8080)}},
				PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 1,
			},
		}},
	}
	for _, s := range shapes {
		s(&spec)
	}
	return spec
}

func args(more ...string) shape {
	return func(spec *corev1.PodSpec) { spec.Containers[0].Args = append(spec.Containers[0].Args, more...) }
}

func withoutProbes(spec *corev1.PodSpec) { spec.Containers[0].ReadinessProbe = nil }

// latched keeps the pod from getting ready, without CPU, until the file released exists in a folder
// of the guest.
func latched(folder string) shape {
	return func(spec *corev1.PodSpec) {
		spec.Volumes = append(spec.Volumes, corev1.Volume{Name: "latch", VolumeSource: corev1.VolumeSource{
			HostPath: &corev1.HostPathVolumeSource{Path: folder, Type: new(corev1.HostPathDirectoryOrCreate)},
		}})
		c := &spec.Containers[0]
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{Name: "latch", MountPath: "/latch", ReadOnly: true})
		c.Args = append(c.Args, "--until", "/latch/released")
	}
}

// createPods creates n pods with that name and a number, and removes them when the test ends.
func createPods(t *testing.T, name string, n int, spec corev1.PodSpec) {
	t.Helper()
	for i := range n {
		createPod(t, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: name + "-" + strconv.Itoa(i)}, Spec: spec})
	}
}

// createPod creates a pod, and removes it when the test ends.
func createPod(t *testing.T, pod *corev1.Pod) {
	t.Helper()
	api := server.Client().CoreV1().Pods(pod.Namespace)
	_, err := api.Create(t.Context(), pod, metav1.CreateOptions{})
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.Background()
		err := api.Delete(ctx, pod.Name, metav1.DeleteOptions{})
		assert.True(t, err == nil || apierrors.IsNotFound(err), "%v", err)
		assert.NoError(t, soon(ctx, func() error {
			if _, err := api.Get(ctx, pod.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
				return fmt.Errorf("pod %s is still there: %w", pod.Name, err)
			}
			return nil
		}))
	})
}

// pods lists the pods with that name prefix.
func pods(t *testing.T, name string) (all []corev1.Pod) {
	t.Helper()
	list, err := server.Client().CoreV1().Pods(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	for _, p := range list.Items {
		if strings.HasPrefix(p.Name, name+"-") {
			all = append(all, p)
		}
	}
	return all
}

func isReady(pod corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

func ready(t *testing.T, name string) (n int) {
	t.Helper()
	for _, p := range pods(t, name) {
		if isReady(p) {
			n++
		}
	}
	return n
}

// life is the start of a container, from containerd and kubelet. An unknown time is zero.
type life struct {
	pod                     string
	created, started, ready time.Time
}

// cri returns a client of the guest's containerd until the test ends.
func cri(t *testing.T) runtimeapi.RuntimeServiceClient {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///guest", grpc.WithTransportCredentials(insecure.NewCredentials()),
		// containerd may not serve yet.
		grpc.WithDefaultCallOptions(grpc.WaitForReady(true)),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return guest.Dial(ctx, "unix", "/run/containerd/containerd.sock")
		}))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, conn.Close()) })
	return runtimeapi.NewRuntimeServiceClient(conn)
}

// lives returns the starts of all containers that containerd has created since a time of the guest
// for pods with that name prefix, in the order of their starts.
func lives(t *testing.T, name string, since time.Time) (all []life) {
	t.Helper()
	client, readyAt := cri(t), readies(t)
	list, err := client.ListContainers(t.Context(), &runtimeapi.ListContainersRequest{})
	require.NoError(t, err)
	for _, c := range list.Containers {
		pod := c.Labels["io.kubernetes.pod.name"]
		if !strings.HasPrefix(pod, name+"-") || time.Unix(0, c.CreatedAt).Before(since) {
			continue
		}
		reply, err := client.ContainerStatus(t.Context(), &runtimeapi.ContainerStatusRequest{ContainerId: c.Id})
		require.NoError(t, err)
		l := life{pod: pod, created: time.Unix(0, c.CreatedAt)}
		if at := reply.Status.StartedAt; at != 0 {
			l.started = time.Unix(0, at)
			i := slices.IndexFunc(readyAt[pod], func(at time.Time) bool { return at.After(l.started) })
			if i >= 0 {
				l.ready = readyAt[pod][i]
			}
		}
		all = append(all, l)
	}
	slices.SortFunc(all, func(a, b life) int { return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.pod, b.pod)) })
	return all
}

var probeLine = regexp.MustCompile(`^I(\d{4} \d{2}:\d{2}:\d{2}\.\d{6}).*"SyncLoop \(probe\)".*probe="readiness" status="ready" pod="default/([^"]+)"`)

// readies reads from kubelet's journal when pods became ready since the boot.
func readies(t *testing.T) map[string][]time.Time {
	t.Helper()
	all := map[string][]time.Time{}
	log := sh(t, `journalctl -b -u kubelet -o cat --no-pager | grep 'SyncLoop (probe)' || true`)
	for line := range strings.Lines(log) {
		m := probeLine.FindStringSubmatch(line)
		if len(m) == 0 {
			continue
		}
		at, err := time.ParseInLocation("2006 0102 15:04:05.000000", strconv.Itoa(time.Now().UTC().Year())+" "+m[1], time.UTC)
		require.NoError(t, err)
		all[m[2]] = append(all[m[2]], at)
	}
	return all
}

// mostStarting returns the highest number of pods between the start of their process and ready at a
// time.
func mostStarting(all []life) (most int) {
	for _, l := range all {
		if l.started.IsZero() {
			continue
		}
		n := 0
		for _, other := range all {
			if !other.started.IsZero() && !other.started.After(l.started) && (other.ready.IsZero() || other.ready.After(l.started)) {
				n++
			}
		}
		most = max(most, n)
	}
	return most
}

func logLives(t *testing.T, all []life) {
	t.Helper()
	for _, l := range all {
		since := func(at time.Time) string {
			if at.IsZero() {
				return "never"
			}
			return fmt.Sprintf("%.1f s", at.Sub(all[0].created).Seconds())
		}
		t.Logf("%-12s created %s, started %s, ready %s", l.pod, since(l.created), since(l.started), since(l.ready))
	}
}

// assertPaced checks that n containers started and got ready within the limit, and that none was
// killed.
func assertPaced(t *testing.T, name string, since time.Time, n, limit int) []life {
	t.Helper()
	all := lives(t, name, since)
	logLives(t, all)
	assert.Len(t, all, n, "containers")
	for _, l := range all {
		assert.False(t, l.ready.IsZero(), "%s did not get ready", l.pod)
	}
	assert.LessOrEqual(t, mostStarting(all), limit, "pods between the start of their process and ready")
	return all
}

// clock returns the guest's time.
func clock(t *testing.T) time.Time {
	t.Helper()
	nanos, err := strconv.ParseInt(sh(t, "date +%%s%%N"), 10, 64)
	require.NoError(t, err)
	return time.Unix(0, nanos)
}

// unpaced returns the lines of the daemon's metrics that count unpaced starts.
func unpaced(t *testing.T) (lines []string) {
	t.Helper()
	text, err := get(t.Context(), "tcp", "127.0.0.1:9464", "/metrics")
	require.NoError(t, err)
	require.Regexp(t, `(?m)^pod_pacemaker_admissions_total\{.*\} [1-9]`, string(text))
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "pod_pacemaker_unpaced_total") && !strings.HasSuffix(line, " 0\n") {
			lines = append(lines, line)
		}
	}
	return lines
}
