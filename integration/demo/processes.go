package demo

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/prometheus/procfs"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/runtimetest"
)

// processNode runs pods as ordinary processes on the in-process NRI runtime.
type processNode struct {
	runtime *runtimetest.Runtime
	herd    Herd
	bin     binaries
	dir     string
	program string // the herd's program
	daemon  *child // nil before its start
}

type processPod struct {
	node *processNode
	pod  *runtimetest.Pod
}

type processContainer struct {
	*runtimetest.Container
	written *safeBuffer
}

// newProcessNode creates a node in a new folder. The caller must close it.
func newProcessNode(ctx context.Context, h Herd, bin binaries) (_ *processNode, err error) {
	dir, err := os.MkdirTemp("", "pp-demo-")
	if err != nil {
		return nil, fmt.Errorf("making a folder for the run: %w; set TMPDIR to one that you can write to", err)
	}
	n := &processNode{herd: h, bin: bin, dir: dir, program: filepath.Join(dir, "herd")}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(dir))
		}
	}()
	if err := buildHerd(ctx, n.program); err != nil {
		return nil, err
	}
	if n.runtime, err = runtimetest.New(runtimetest.Options{Dir: dir}); err != nil {
		return nil, err
	}
	return n, n.runtime.Start()
}

func (n *processNode) describe() string { return "ordinary processes on an in-process NRI runtime" }

func (n *processNode) close(ctx context.Context) error {
	var err error
	if n.daemon != nil {
		err = n.daemon.stop(ctx)
	}
	return errors.Join(err, n.runtime.Stop(), os.RemoveAll(n.dir))
}

// startDaemon runs the daemon as a child, as the same user.
func (n *processNode) startDaemon(ctx context.Context, limit int) (func(context.Context) error, error) {
	d, err := newDaemon(n.bin, filepath.Join(n.dir, "pp"), n.runtime.Socket(), limit)
	if err != nil {
		return nil, err
	}
	if n.daemon, err = startChild(d.args, filepath.Join(n.dir, "pod-pacemaker.log")); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, daemonPatience)
	defer cancel()
	return n.daemon.stop, n.daemon.await(ctx, d.ready)
}

// clear stops the runtime, which ends everything, and starts it again, empty.
func (n *processNode) clear(context.Context) error {
	if err := n.runtime.Stop(); err != nil {
		return err
	}
	return n.runtime.Start()
}

func (n *processNode) runPod(ctx context.Context, name, uid string, _ int) (pod, error) {
	p, err := n.runtime.RunPod(ctx, runtimetest.PodSpec{
		Namespace: namespace, Name: name, UID: uid,
		Annotations: map[string]string{"kubernetes.io/config.source": "api"},
	})
	if err != nil {
		return nil, err
	}
	return &processPod{node: n, pod: p}, nil
}

func (p *processPod) create(ctx context.Context, _ int) (container, error) {
	args, err := confined(p.node.herd, append([]string{p.node.program}, p.node.herd.arguments(0)...))
	if err != nil {
		return nil, err
	}
	written := &safeBuffer{}
	c, err := p.pod.CreateContainer(ctx, runtimetest.ContainerSpec{
		Name: containerName, Args: args, Stdout: written,
	})
	if err != nil {
		return nil, err
	}
	return &processContainer{Container: c, written: written}, nil
}

func (c *processContainer) start(ctx context.Context) error { return c.Start(ctx) }

func (c *processContainer) stop(ctx context.Context) error { return c.Stop(ctx, stopGrace) }

func (c *processContainer) exited(context.Context) (time.Time, bool, error) {
	status := c.Status()
	return status.FinishedAt, status.State == runtimetest.Exited, nil
}

func (c *processContainer) output() (string, error) { return c.written.String(), nil }

func (c *processContainer) cpu() time.Duration {
	proc, err := procfs.NewProc(c.Status().Pid)
	if err != nil {
		return 0 // the process has just ended
	}
	stat, err := proc.Stat()
	if err != nil {
		return 0
	}
	return time.Duration(stat.CPUTime() * float64(time.Second))
}

// safeBuffer is a buffer for one writer and many readers.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
