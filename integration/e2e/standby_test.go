//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// standBy starts a second daemon on the first one's folder, and waits until it
// stands by.
func (d *daemon) standBy(t *testing.T) *daemon {
	t.Helper()
	second := &daemon{runDir: d.runDir, gate: d.gate, admin: d.admin, http: freeAddress(t)}
	var err error
	second.Service, err = node.StartService(t.Context(), lab.ServiceSpec{
		Name: "standby-" + unique(), HostNetwork: true,
		Args: []string{
			repository("bin", "pod-pacemaker"), "run", "--kubeconfig", asServiceAccount(t), "--node-name", node.NodeName,
			"--nri-socket", node.NRISocket, "--run-dir", d.runDir, "--state-dir", t.TempDir(),
			"--gate-path", d.gate, "--http", second.http, "--log-level", "debug",
		},
		Ready: func(ctx context.Context) error {
			said, err := readyz(ctx, second.http)
			if err == nil && !strings.HasPrefix(said, "standby: ") {
				err = fmt.Errorf("it does not stand by: %s", said)
			}
			return err
		},
	})
	require.NoError(t, err)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the second daemon's log ends:\n%s", second.Tail(100))
		}
		if err := second.Stop(context.Background()); err != nil {
			t.Errorf("stop of the second daemon: %v", err)
		}
	})
	return second
}

// readyz gives what a daemon answers there with 200.
func readyz(ctx context.Context, address string) (string, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/readyz", nil)
	if err != nil {
		return "", err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", reply.Status, body)
	}
	return string(body), err
}

// Two daemons on one folder, as in an upgrade or with a systemd unit beside the
// DaemonSet: the second stands by, and takes over all who wait when the first ends.
func TestStandbyTakesOver(t *testing.T) {
	d := startDaemon(t)
	second := d.standBy(t)
	ns := namespace(t)
	begin, slow := time.Now(), newLatch(t)
	crowd(t, d, ns, slow.holds)
	order := d.waitingNames(t)

	require.NoError(t, d.Stop(t.Context()))
	stopped := time.Now()
	took := func(s admin.Status, err error) bool { return err == nil && s.Ready && s.Gate.Waiters == crowded }
	eventually(t, "the second has all who wait", func() bool { return took(d.admin.Status(t.Context())) })
	gap := time.Since(stopped)
	assert.Equal(t, order, second.waitingNames(t), "the order of those that wait")
	assert.Len(t, second.status(t).Starting, crowdLimit, "the starts under way count")

	second.limit(t, drainLimit)
	slow.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, crowdLimit+crowded) })
	second.idle(t)
	all := lives(t, ns)
	logLives(t, begin, all)
	assertUnharmed(t, all)
	assertStartsInOrder(t, order, all, drainLimit)
	assertUnpaced(t, second, crowdLimit) // the slow ones, which it found
	assert.LessOrEqual(t, mostStarting(all), crowdLimit, "pods between the start of their process and ready")
	figure(t, "the second daemon had all %d that wait %.1f s after the first ended", crowded, gap.Seconds())
}
