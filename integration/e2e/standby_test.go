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

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// standBy starts a second daemon on the first one's folder, and waits until it stands by.
func (d *daemon) standBy(t *testing.T) *daemon {
	t.Helper()
	second := &daemon{runDir: d.runDir, gate: d.gate, admin: d.admin, http: freeAddress(t)}
	var err error
	second.Service, err = node.StartService(t.Context(), lab.ServiceSpec{
		Name: "standby-" + unique(), HostNetwork: true,
		Args: []string{
			repository("bin", "pod-pacemaker"), "run", "--kubeconfig", asServiceAccount(t), "--node-name", node.NodeName,
			"--nri-socket", node.NRISocket, "--run-dir", d.runDir, "--state-dir", t.TempDir(),
			"--gate-path", d.gate, "--gate-timeout", "1h", "--http", second.http, "--log-level", "debug", "--cni=off",
		},
		Ready: func(ctx context.Context) error {
			said, err := readyz(ctx, second.http)
			if err == nil && !strings.HasPrefix(said, "standby: ") {
				err = fmt.Errorf("the daemon does not stand by: %s", said)
			}
			return err
		},
	})
	require.NoError(t, err)
	second.endsWith(t)
	return second
}

// readyz returns a daemon's answer to /readyz if its status is 200.
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

// Two daemons share one folder, as in an upgrade or with a systemd unit beside the DaemonSet: the
// second stands by, and takes over all waiting pods when the first ends.
func TestStandbyTakesOver(t *testing.T) {
	d := startDaemon(t, placesForAll...)
	second := d.standBy(t)
	ns := namespace(t)
	begin, slow := time.Now(), newLatch(t)
	crowd(t, d, ns, slow.holds)
	order := d.waitingNames(t)

	require.NoError(t, d.Stop(t.Context()))
	stopped := time.Now()
	took := func(s admin.Status, err error) bool { return err == nil && s.Ready && s.Gate.Waiters == crowded }
	eventually(t, "the second daemon has all waiting pods", func() bool { return took(d.admin.Status(t.Context())) })
	gap := time.Since(stopped)
	second.assertTookOver(t, ns, begin, order, slow)
	figure(t, "the second daemon had all %d waiting pods %.1f s after the first ended", crowded, gap.Seconds())
}
