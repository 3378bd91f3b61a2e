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
	if s.processes {
		return newProcessNode(ctx, s.herd, s.bin)
	}
	if err := lab.Preflight(); err != nil {
		return nil, orProcesses(err)
	}
	built, err := s.build(ctx)
	if err != nil {
		return nil, orProcesses(err)
	}
	s.say("Starting a containerd of its own ...")
	r, err := lab.StartRuntime(ctx, lab.RuntimeOptions{Binaries: built})
	if err != nil {
		return nil, orProcesses(err)
	}
	return &criNode{runtime: r, herd: s.herd, bin: s.bin}, nil
}

func orProcesses(err error) error {
	return fmt.Errorf("%w; --processes shows the same herd without containers", err)
}

// build builds containerd and its companions, which takes minutes the first time.
func (s *show) build(ctx context.Context) (lab.Binaries, error) {
	cache, err := lab.CacheDir()
	if err != nil {
		return lab.Binaries{}, err
	}
	var progress build.Progress = build.PlainProgress(s.Out)
	if s.Terminal {
		bars := newBuildBars(s.Out)
		defer bars.close()
		progress = bars
	}
	built, err := lab.BuildRuntime(ctx, cache, progress)
	if err != nil && !errors.Is(err, lab.ErrHost) {
		err = fmt.Errorf("building containerd: %w", err)
	}
	return built, err
}
