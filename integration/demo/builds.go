package demo

import (
	"context"
	"errors"
	"fmt"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// makeNode builds missing programs and starts the node.
func (s *show) makeNode(ctx context.Context) (node, error) {
	if err := lab.Preflight(); err != nil {
		return nil, err
	}
	cache, err := lab.CacheDir()
	if err != nil {
		return nil, err
	}
	built, err := lab.BuildRuntime(ctx, cache, build.PlainProgress(s.Out)) // takes minutes the first time
	if err != nil && !errors.Is(err, lab.ErrHost) {
		err = fmt.Errorf("building containerd: %w", err)
	}
	if err != nil {
		return nil, err
	}
	s.say("Starting a containerd of its own ...")
	r, err := lab.StartRuntime(ctx, lab.RuntimeOptions{Binaries: built})
	if err != nil {
		return nil, err
	}
	return &criNode{runtime: r, herd: s.herd, bin: s.bin}, nil
}
