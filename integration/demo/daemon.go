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

// daemonPatience is how long the daemon may take until it paces.
const daemonPatience = 20 * time.Second

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

// daemon says how to start the daemon, standalone, with its files in a folder.
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
		// Here every container is started again if it is lost, and the runtime is a
		// current one: the gate does no harm.
		"--gate", "always", "--gate-path", gate, "--http", address, "--log-format", "text",
	}}, nil
}

// ownCopy gives the path of a copy of the hook in dir, which is made if there is none
// yet: the daemon uses no hook below a folder that others can write, as a checkout
// of the repository may be.
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

// freeAddress is a TCP address on this machine that nobody listens on now.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("looking for a free port: %w", err)
	}
	return l.Addr().String(), l.Close()
}

// ready asks the daemon whether it paces: nil.
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
