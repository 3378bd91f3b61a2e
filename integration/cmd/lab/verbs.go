package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// startTimeout bounds the start of a cluster, builds excepted.
const startTimeout = 5 * time.Minute

var errNothingUp = errors.New("no cluster is up")

// verbs implements the command line's verbs. Output for a shell or a program goes to out, messages
// for people to err.
type verbs struct {
	out, err io.Writer
	labels   map[string]string
}

func (v *verbs) binaries(ctx context.Context) (lab.Binaries, error) {
	cache, err := lab.CacheDir()
	if err != nil {
		return lab.Binaries{}, err
	}
	return lab.Build(ctx, cache, build.PlainProgress(v.err))
}

func (v *verbs) build(ctx context.Context) error {
	_, err := v.binaries(ctx)
	return err
}

// up starts a cluster, unless one is up already.
func (v *verbs) up(ctx context.Context) error {
	if err := lab.Preflight(); err != nil {
		return err
	}
	standing, err := lab.Detached("")
	if err != nil {
		return err
	}
	if len(standing) > 0 {
		fmt.Fprintln(v.err, "A cluster is up already; lab down ends it.")
		return v.print(ctx, standing[0])
	}
	binaries, err := v.binaries(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintln(v.err, "Starting the cluster ...")
	limited, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	c, err := lab.StartCluster(limited, lab.ClusterOptions{
		RuntimeOptions: lab.RuntimeOptions{Binaries: binaries}, NodeLabels: v.labels,
	})
	if err != nil {
		return err
	}
	access, err := c.Detach(limited)
	if err != nil {
		return errors.Join(err, c.Stop(context.WithoutCancel(ctx)))
	}
	if built() {
		if err := v.offer(limited, access); err != nil {
			return err
		}
	}
	return v.print(ctx, access)
}

// print writes shell commands that give access to the cluster.
func (v *verbs) print(ctx context.Context, a lab.Access) error {
	helm, err := v.helm(ctx)
	if err != nil {
		return err
	}
	path := strings.Join([]string{filepath.Dir(a.Kubectl), filepath.Dir(a.CTR), helm, repository("bin")}, ":")
	_, err = fmt.Fprintf(v.out, `export KUBECONFIG=%s
export CONTAINERD_ADDRESS=%s CONTAINERD_NAMESPACE=k8s.io
export NRI_SOCKET=%s
export PATH=%s:$PATH
export VALUES=%s HERD=%s
# run %s: logs in %s, static pods in %s
`, a.Kubeconfig, a.Containerd, a.NRI, path, valuesFile(a), herdFile(a), a.Run.ID, a.Run.LogDir(), a.StaticPodDir)
	return err
}

// down ends the clusters that up started, including dead ones.
func (v *verbs) down(ctx context.Context) error {
	standing, err := lab.Detached("")
	if err != nil {
		return err
	}
	for _, a := range standing {
		if err := lab.TakeDown(ctx, a.Run); err != nil {
			return err
		}
		left, err := lab.Remains(a.Run)
		if err != nil {
			return err
		}
		if len(left) > 0 {
			return fmt.Errorf("run %s ended, but left %q", a.Run.ID, left)
		}
		fmt.Fprintf(v.err, "run %s is down, nothing is left\n", a.Run.ID)
	}
	if len(standing) == 0 {
		fmt.Fprintln(v.err, errNothingUp)
	}
	return v.sweep(ctx)
}

// status shows how to reach the clusters that are up.
func (v *verbs) status(ctx context.Context) error {
	standing, err := lab.Detached("")
	if err != nil {
		return err
	}
	if len(standing) == 0 {
		return errNothingUp
	}
	for _, a := range standing {
		if err := v.print(ctx, a); err != nil {
			return err
		}
	}
	return nil
}

// sweep removes what killed runs left.
func (v *verbs) sweep(ctx context.Context) error {
	swept, err := lab.Sweep(ctx, "")
	for _, run := range swept {
		fmt.Fprintf(v.err, "run %s was killed; its remains are gone\n", run.ID)
	}
	return err
}
