package demo

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// daemonTimeout is how long the daemon may take until it paces pods.
const daemonTimeout = 20 * time.Second

// config is the PacemakerConfig of the paced run.
const config = `apiVersion: pod-pacemaker.io/v1alpha1
kind: PacemakerConfig
metadata:
  name: demo
spec:
  throttleConfig:
    maxConcurrent:
      value: %d
`

// daemon can start a standalone daemon with its files in a folder.
type daemon struct {
	args []string
	http string
}

// newDaemon writes the daemon's configuration into dir.
func newDaemon(b binaries, dir, nriSocket string, limit int) (daemon, error) {
	file := filepath.Join(dir, "config.yaml")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return daemon{}, err
	}
	gate, err := ownCopy(b.gate, dir)
	if err != nil {
		return daemon{}, err
	}
	if err := os.WriteFile(file, fmt.Appendf(nil, config, limit), 0o644); err != nil {
		return daemon{}, err
	}
	address, err := freeAddress()
	if err != nil {
		return daemon{}, err
	}
	return daemon{http: address, args: []string{
		b.daemon, "run", "--config", file, "--kubeconfig", "", "--node-name", "demo",
		"--nri-socket", nriSocket, "--run-dir", filepath.Join(dir, "run"), "--state-dir", filepath.Join(dir, "state"),
		// The demo restarts every container that is lost, and the runtime is a current one, so the
		// gate is always safe.
		"--gate", "always", "--gate-path", gate, "--http", address, "--log-format", "text", "--cni=off",
	}}, nil
}

// ownCopy returns the path of a copy of the hook in dir, and makes the copy if necessary. The
// daemon uses no hook below a folder that other users can write, and a checkout may be such a
// folder.
func ownCopy(gate, dir string) (string, error) {
	path := filepath.Join(dir, filepath.Base(gate))
	if isFile(path) {
		return path, nil
	}
	program, err := os.ReadFile(gate)
	if err != nil {
		return "", err
	}
	return path, os.WriteFile(path, program, 0o755)
}

// freeAddress returns an unused TCP address of this machine.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// ready returns nil if the daemon paces pods.
func (d daemon) ready(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+d.http+"/readyz", http.NoBody)
	if err != nil {
		return err
	}
	reply, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer reply.Body.Close()
	if reply.StatusCode != http.StatusOK {
		return fmt.Errorf("it is not ready: %s", reply.Status)
	}
	return nil
}
