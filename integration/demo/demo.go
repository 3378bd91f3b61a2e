package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/timeline"
)

// clearTimeout is for the removal of the unpaced run's pods, and closeTimeout for that of everything that the demo
// started.
const clearTimeout, closeTimeout = time.Minute, 20 * time.Second

// Options are the demo's options.
type Options struct {
	// CPUs is the number of CPUs that the pods may use. The herd grows with it.
	CPUs int
	// Bin is the folder of the project's two programs; empty: bin/ of the
	// repository.
	Bin string
	// Report is the path of the HTML file to write. Empty: pod-pacemaker-demo.html beside the folder
	// of the programs.
	Report string
	// Out receives progress and the table. Terminal says that it is a terminal that can draw bars.
	Out      io.Writer
	Terminal bool
}

// ErrOptions is wrapped by the error of invalid options.
var ErrOptions = errors.New("wrong options")

// Run runs the demo. It returns when everything that it started is removed, also if ctx ends early.
func Run(ctx context.Context, o Options) error {
	s, err := prepare(o)
	if err != nil {
		return err
	}
	defer s.report.discard()
	s.introduce()
	if err := s.warnIfBusy(ctx); err != nil {
		return s.explain(ctx, err)
	}
	if s.node, err = s.makeNode(ctx); err != nil {
		return s.explain(ctx, err)
	}
	runs, err := s.bothRuns(ctx)
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if closeErr := s.node.close(closing); closeErr != nil {
		return errors.Join(s.explain(ctx, err), fmt.Errorf("cleaning up: %w", closeErr))
	}
	if err != nil {
		return s.explain(ctx, err)
	}
	return s.conclude(runs)
}

// show is one run of the demo.
type show struct {
	Options
	herd   Herd
	bin    binaries
	report *reportFile
	node   node
}

// prepare checks whether everything is available, before anything starts.
func prepare(o Options) (*show, error) {
	if o.CPUs < 1 {
		return nil, fmt.Errorf("%w: --cpus %d: must be 1 or more", ErrOptions, o.CPUs)
	}
	cpus, err := usableCPUs(o.CPUs)
	if err != nil {
		return nil, err
	}
	s := &show{Options: o, herd: NewHerd(cpus)}
	if s.bin, err = findBinaries(o.Bin); err != nil {
		return nil, err
	}
	if s.report, err = newReportFile(o.Report, s.bin); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrOptions, err)
	}
	return s, nil
}

// bothRuns runs the herd unpaced, then paced.
func (s *show) bothRuns(ctx context.Context) ([]timeline.Run, error) {
	s.say("")
	unpaced, err := s.run(ctx, "unpaced", 0)
	if err != nil {
		return nil, err
	}
	if err := s.clear(ctx); err != nil {
		return nil, err
	}
	stop, err := s.node.startDaemon(ctx, s.herd.Limit)
	if err != nil {
		return nil, err
	}
	s.say("")
	paced, err := s.run(ctx, "paced", s.herd.Limit)
	if err != nil {
		return nil, err
	}
	return []timeline.Run{unpaced, paced}, stop(ctx)
}

// clear removes all pods.
func (s *show) clear(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, clearTimeout)
	defer cancel()
	return s.node.clear(ctx)
}

// run starts the herd once and follows it until all pods are ready, or it is plain that they do not get ready.
func (s *show) run(ctx context.Context, name string, limit int) (timeline.Run, error) {
	rec := newRecorder(name, limit, s.herd)
	k := &kubelet{node: s.node, herd: s.herd, rec: rec}
	run, err := k.show(ctx, s.progress(), s.herd.longest())
	if err == nil {
		err = ctx.Err()
	}
	return run, err
}

func (s *show) progress() progress {
	if s.Terminal {
		return newBarProgress(s.Out, s.herd.Burn)
	}
	return plainProgress{out: s.Out}
}

func (s *show) say(format string, args ...any) { fmt.Fprintf(s.Out, format+"\n", args...) }

// explain replaces the errors that follow from an early end of the demo.
func (s *show) explain(ctx context.Context, err error) error {
	if err != nil && ctx.Err() != nil {
		return errors.New("ended early; everything that the demo had started is gone")
	}
	return err
}
