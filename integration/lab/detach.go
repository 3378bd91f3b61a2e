package lab

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab/keeper"
)

// Access says how to reach a cluster that outlives its owner.
type Access struct {
	Run Run
	// Kubeconfig is the administrator's kubeconfig.
	Kubeconfig string
	// Containerd and NRI are sockets.
	Containerd, NRI string
	// Kubectl and CTR are the programs of the cluster's releases.
	Kubectl, CTR string
	// StaticPodDir is where the kubelet looks for static pods.
	StaticPodDir string
}

// accessFile is the file with a detached run's access.
func accessFile(run Run) string { return filepath.Join(run.Dir, "access.json") }

// Detach keeps the cluster running when this process ends, until TakeDown. After a success c cannot
// be used any more. After an error c must be stopped as usual.
func (c *Cluster) Detach(ctx context.Context) (Access, error) {
	a := Access{
		Run: c.Run, Kubeconfig: c.Kubeconfig, Containerd: c.Socket, NRI: c.NRISocket,
		Kubectl: c.binaries.Kubectl, CTR: c.binaries.CTR, StaticPodDir: c.StaticPodDir,
	}
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return Access{}, err
	}
	if err := os.WriteFile(accessFile(c.Run), text, 0o600); err != nil {
		return Access{}, fmt.Errorf("writing down how to reach the cluster: %w", err)
	}
	if err := c.keeper.Release(ctx); err != nil {
		return Access{}, err
	}
	return a, c.conn.Close()
}

// Detached lists the live detached clusters below parent. "" is the default parent.
func Detached(parent string) ([]Access, error) {
	runs, err := Runs(parent)
	if err != nil {
		return nil, err
	}
	var all []Access
	for _, run := range runs {
		alive, err := run.Alive()
		if err != nil {
			return nil, err
		}
		text, err := os.ReadFile(accessFile(run))
		if !alive || errors.Is(err, fs.ErrNotExist) {
			continue // dead, or its owner will take it down
		}
		var a Access
		if err == nil {
			err = json.Unmarshal(text, &a)
		}
		if err != nil {
			return nil, fmt.Errorf("reading how to reach run %s: %w", run.ID, err)
		}
		all = append(all, a)
	}
	return all, nil
}

// TakeDown ends a live run of any owner, and returns when nothing of it is left.
func TakeDown(ctx context.Context, run Run) error {
	k, err := keeper.Dial(ctx, run)
	if err != nil {
		return err
	}
	return k.Stop(ctx)
}
