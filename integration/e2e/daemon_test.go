//go:build e2e

package e2e

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// daemon is a pod-pacemaker daemon on the node.
type daemon struct {
	*lab.Service
	admin  *admin.Client
	runDir string
	gate   string // path of its hook
	http   string // address of its metrics
	log    string // its log file, if it is not a service of the node
}

// LogFile returns the path of the daemon's log.
func (d *daemon) LogFile() string {
	if d.Service == nil {
		return d.log
	}
	return d.Service.LogFile()
}

// logged returns the daemon's log.
func (d *daemon) logged(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(d.LogFile())
	require.NoError(t, err)
	return string(text)
}

// installGate copies the hook into a folder of the node and returns its path. The daemon uses no
// hook below a folder that other users can write, and a checkout may be such a folder.
func installGate(t *testing.T, dir string) string {
	t.Helper()
	said, err := exec.CommandContext(t.Context(), "install", "-D", "-m", "0755", "-t", dir, repository("bin", "pacemaker-gate")).CombinedOutput()
	require.NoError(t, err, "%s", said)
	return filepath.Join(dir, "pacemaker-gate")
}

// startDaemon runs the daemon on the node's API server until the test ends. It has only the shipped
// rights, which must suffice.
func startDaemon(t *testing.T, args ...string) *daemon {
	t.Helper()
	return startDaemonAs(t, asServiceAccount(t), args...)
}

// startDaemonAs is startDaemon with the access of another kubeconfig.
func startDaemonAs(t *testing.T, kubeconfig string, args ...string) *daemon {
	t.Helper()
	d := startDaemonWith(t, append([]string{"--kubeconfig", kubeconfig, "--node-name", node.NodeName}, args...)...)
	t.Cleanup(func() { d.assertRightsSuffice(t) })
	return d
}

// startDaemonWith runs the daemon with only these arguments and the node's folders, and waits until
// it paces pods. It has no waiting room unless the arguments ask for one.
func startDaemonWith(t *testing.T, args ...string) *daemon {
	t.Helper()
	return startProgram(t, repository("bin", "pod-pacemaker"), args...)
}

// startProgram is startDaemonWith for a daemon that was built otherwise.
func startProgram(t *testing.T, program string, args ...string) *daemon {
	t.Helper()
	dir, err := os.MkdirTemp(node.Dir, "pp")
	require.NoError(t, err)
	d := &daemon{runDir: filepath.Join(dir, "run"), gate: installGate(t, dir), http: freeAddress(t)}
	d.admin = admin.NewClient(filepath.Join(d.runDir, "admin.sock"))
	all := append([]string{
		program, "run",
		"--nri-socket", node.NRISocket, "--containerd-state", filepath.Join(node.Dir, "containerd", "state"), "--run-dir", d.runDir, "--state-dir", filepath.Join(dir, "state"),
		"--gate-path", d.gate, "--http", d.http, "--log-level", "debug", "--cni=off",
	}, args...)
	d.Service, err = node.StartService(t.Context(), lab.ServiceSpec{
		Name: filepath.Base(dir), Args: all, HostNetwork: true,
		Ready: func(ctx context.Context) error {
			s, err := d.admin.Status(ctx)
			if err == nil && !s.Ready {
				err = fmt.Errorf("not ready: %s", s.NotReady)
			}
			if err == nil && s.Gate.WhyNot == "the hook is being installed" {
				err = errors.New(s.Gate.WhyNot)
			}
			return err
		},
	})
	require.NoError(t, err)
	d.endsWith(t)
	return d
}

// startUnready starts the daemon and waits until it answers. It need not pace pods yet.
func (d *daemon) startUnready(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	started := make(chan error, 1)
	go func() { started <- d.Start(ctx) }()
	eventually(t, "the daemon answers", func() bool {
		_, err := d.admin.Status(t.Context())
		return err == nil
	})
	cancel() // ends the wait for its readiness
	t.Logf("the daemon answers before it paces pods; the wait for its readiness ended with: %v", <-started)
}

// endsWith stops the daemon when the test ends, and logs the end of its log if the test failed.
func (d *daemon) endsWith(t *testing.T) {
	t.Helper()
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the log of %s ends:\n%s", d.Name(), d.Tail(400))
		}
		if err := d.Stop(context.Background()); err != nil {
			t.Errorf("stop of %s: %v", d.Name(), err)
		}
	})
}

func (d *daemon) status(t *testing.T) admin.Status {
	t.Helper()
	s, err := d.admin.Status(t.Context())
	require.NoError(t, err)
	return s
}

// why returns the line that says why a pod waits or started, or nothing if the daemon does not know
// the pod.
func (d *daemon) why(t *testing.T, namespace, name string) string {
	t.Helper()
	line, err := exec.CommandContext(t.Context(), repository("bin", "pod-pacemaker"), "why", namespace+"/"+name, "--run-dir", d.runDir).Output()
	require.NoError(t, err)
	return string(line)
}

// configure creates a PacemakerConfig and waits until it is in force.
func (d *daemon) configure(t *testing.T, spec string) {
	t.Helper()
	name := "e2e-" + unique()
	file := filepath.Join(t.TempDir(), "config.yaml")
	yaml := fmt.Sprintf("apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: %s}\nspec: %s\n", name, spec)
	require.NoError(t, os.WriteFile(file, []byte(yaml), 0o600))
	out, err := node.Kubectl(t.Context(), "apply", "-f", file)
	require.NoError(t, err, "%s", out)
	t.Cleanup(func() {
		if out, err := node.Kubectl(context.Background(), "delete", "-f", file); err != nil {
			t.Errorf("delete of the config: %v\n%s", err, out)
		}
	})
	eventually(t, "the config is in force", func() bool { return d.status(t).Config.Name == name })
}

// idle waits until no pod waits or starts.
func (d *daemon) idle(t *testing.T) {
	t.Helper()
	eventually(t, "no pod waits or starts", func() bool {
		s := d.status(t)
		return len(s.Waiting)+len(s.Preparing)+len(s.Starting) == 0
	})
}

// ended returns the last start of each pod of a namespace by pod name.
func (d *daemon) ended(t *testing.T, namespace string) map[string]admin.Pod {
	t.Helper()
	pods := map[string]admin.Pod{}
	for _, p := range d.status(t).Ended {
		if _, later := pods[p.Name]; !later && p.Namespace == namespace && p.State == throttle.Started {
			pods[p.Name] = p
		}
	}
	return pods
}

// eventually waits for a condition.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	polled(t, 100*time.Millisecond, what, holds)
}

// polled is eventually with another poll interval.
func polled(t *testing.T, every time.Duration, what string, holds func() bool) {
	t.Helper()
	polledFor(t, testTimeout, every, what, holds)
}

// polledFor is polled for a condition that may take longer than testTimeout.
func polledFor(t *testing.T, most, every time.Duration, what string, holds func() bool) {
	t.Helper()
	deadline := time.Now().Add(most)
	for !holds() {
		if time.Now().After(deadline) {
			logCluster(t)
			require.FailNow(t, "the time ran out before this was true: "+what)
		}
		time.Sleep(every)
	}
}

// freeAddress returns an unused address of this machine.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// metric returns the value of the first sample that begins with this name and labels, or 0.
func (d *daemon) metric(t *testing.T, sample string) float64 {
	t.Helper()
	all := d.samples(t, sample)
	if len(all) == 0 {
		return 0
	}
	return all[slices.Min(slices.Collect(maps.Keys(all)))]
}

// samples returns the samples that begin with this name and labels.
func (d *daemon) samples(t *testing.T, begins string) map[string]float64 {
	t.Helper()
	return samplesOf(t, "http://"+d.http+"/metrics", begins)
}

// samplesOf is samples for any program.
func samplesOf(t *testing.T, url, begins string) map[string]float64 {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	require.NoError(t, err)
	reply, err := http.DefaultClient.Do(request)
	require.NoError(t, err)
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return samplesIn(t, string(body), begins)
}

// samplesIn is samples for a text.
func samplesIn(t *testing.T, text, begins string) map[string]float64 {
	t.Helper()
	all := map[string]float64{}
	for line := range strings.Lines(text) {
		if end := strings.LastIndexByte(line, ' '); end > 0 && strings.HasPrefix(line, begins) {
			n, err := strconv.ParseFloat(strings.TrimSpace(line[end:]), 64)
			require.NoError(t, err, line)
			all[line[:end]] = n
		}
	}
	return all
}

// assertAllPaced checks that the daemon paced every start since it began.
func assertAllPaced(t *testing.T, d *daemon) {
	t.Helper()
	assertUnpaced(t, d, 0)
}

// assertUnpaced checks that the daemon paced every start since it began, except the starts under
// way when it began. underWay bounds the number of these.
func assertUnpaced(t *testing.T, d *daemon, underWay int) {
	t.Helper()
	const unpaced = "pod_pacemaker_unpaced_total"
	found := fmt.Sprintf("%s{reason=%q}", unpaced, reasons.Adopted)
	all := d.samples(t, unpaced)
	assert.LessOrEqual(t, all[found], float64(underWay), "starts under way when the daemon began")
	delete(all, found)
	never := func(_ string, value float64) bool { return value == 0 } // series that alerts look at begin at 0
	maps.DeleteFunc(all, never)
	assert.Empty(t, all, "unpaced starts")
	admitted := d.samples(t, "pod_pacemaker_admissions_total")
	maps.DeleteFunc(admitted, never)
	assert.NotEmpty(t, admitted, "the daemon admitted no pod, so there is nothing to check")
}
