package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/journal"
)

// preRegisteredConfig is what the text is called with which the runtime configures the
// plugins that it starts itself.
const preRegisteredConfig = "the plugin's configuration (conf.d of NRI)"

// notPreRegistered are the flags of `run` that mean nothing where the runtime starts the
// daemon.
var notPreRegistered = []string{"nri-socket", "nri-index", "daemonset", "help"}

// serveRuntime runs the daemon as a plugin that the runtime has started, until the runtime
// is gone or ctx ends. ok is false where the runtime has not.
func (p *program) serveRuntime(ctx context.Context) (code int, ok bool) {
	quiet := logrus.New()
	quiet.SetOutput(p.stderr)
	quiet.SetLevel(logrus.WarnLevel)
	link, err := nri.TakePreRegistered(p.env, quiet)
	if link == nil && err == nil {
		return 0, false
	}
	if err == nil {
		err = p.runPreRegistered(ctx, link)
	}
	return p.report(p.rootCommand(), err), true
}

// refusalHeard is how long the runtime has time to hear why no daemon paces.
const refusalHeard = 2 * time.Second

func (p *program) runPreRegistered(ctx context.Context, link *nri.PreRegistered) error {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() {
		defer cancel() // the runtime knows it, and ends this process; also of a daemon that stands by
		over <- link.Run(ctx)
	}()
	err := p.runConfigured(ctx, link)
	if err != nil {
		link.Refuse(err)
		select {
		case <-ctx.Done():
		case <-time.After(refusalHeard):
		}
	}
	cancel()
	if ended := <-over; err == nil {
		err = ended
	}
	return err
}

// runConfigured runs the daemon as the runtime's text says.
func (p *program) runConfigured(ctx context.Context, link *nri.PreRegistered) error {
	text, err := link.Config(ctx)
	if err != nil {
		return err
	}
	f, err := preRegisteredFlags(text, p.env)
	if err != nil {
		return err
	}
	f.PreRegistered = link
	if f.log.format == formatAuto && journal.Reached() {
		f.log.format = formatJournald // stderr of such a process leads nowhere
	}
	return p.runDaemon(ctx, f)
}

// preRegisteredFlags returns the flags of `run` that a text in YAML names, without their
// dashes, each with its value. An empty text names none.
func preRegisteredFlags(text string, env func(string) string) (*runFlags, error) {
	var settings map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &settings); err != nil {
		return nil, invalidIn(preRegisteredConfig, fmt.Errorf("must be YAML that maps flags of `run` to values, like \"node-name: worker-3\": %w", err))
	}
	f := &runFlags{}
	cmd := &cobra.Command{Use: "run"}
	f.add(cmd)
	var faults []error
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := setPreRegistered(cmd, name, settings[name]); err != nil {
			faults = append(faults, err)
		}
	}
	if len(faults) > 0 {
		return nil, &invalid{preRegisteredConfig, faults}
	}
	if err := f.resolve(cmd, env); err != nil {
		return nil, err
	}
	return f, nil
}

// setPreRegistered sets one flag.
func setPreRegistered(cmd *cobra.Command, name string, value any) error {
	if cmd.Flags().Lookup(name) == nil || slices.Contains(notPreRegistered, name) {
		return fmt.Errorf("%s: there is no such setting here; those are the flags of `run`, but for %s", name, strings.Join(notPreRegistered[:3], ", "))
	}
	switch value.(type) {
	case string, bool, float64: // as every number of YAML
	default:
		return fmt.Errorf("%s: must be a text, a number or true or false", name)
	}
	if err := cmd.Flags().Set(name, fmt.Sprint(value)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
