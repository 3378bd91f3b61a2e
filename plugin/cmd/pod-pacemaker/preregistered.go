package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	systemd "github.com/coreos/go-systemd/v22/journal"
	"github.com/sirupsen/logrus"
	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/nri"
)

// preRegisteredConfig names, in errors, the text with which the runtime configures a plugin that it starts.
const preRegisteredConfig = "the plugin's configuration (conf.d of NRI)"

// notPreRegistered are the flags of `run` that have no meaning if the runtime starts the daemon.
var notPreRegistered = []string{"nri-socket", "nri-index", "daemonset", "help"}

// serveRuntime runs the daemon as a plugin that the runtime has started, until the runtime is gone or ctx
// ends. ok is false if the runtime has not started this process.
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
	p.accepted = true // it was empty
	return p.report(p.rootCommand(), err), true
}

// refusalHeard is how long the runtime has to read why the daemon does not pace.
const refusalHeard = 2 * time.Second

func (p *program) runPreRegistered(ctx context.Context, link *nri.PreRegistered) error {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan error, 1)
	go func() {
		defer cancel() // the runtime notices the end and ends this process, also if this daemon stands by
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

// runConfigured runs the daemon with the flags in the runtime's text.
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
	if f.log.format == formatAuto && systemd.Enabled() {
		f.log.format = formatJournald // nothing reads the stderr of a plugin
	}
	return p.runDaemon(ctx, f)
}

// preRegisteredFlags reads flags of `run` from YAML that maps their names, without dashes, to values. The text
// may be empty.
func preRegisteredFlags(text string, env func(string) string) (*runFlags, error) {
	var settings map[string]any
	if err := yaml.UnmarshalStrict([]byte(text), &settings); err != nil {
		return nil, invalidIn(preRegisteredConfig, fmt.Errorf("must be YAML that maps flags of `run` to values, like \"node-name: worker-3\": %w", err))
	}
	f := &runFlags{}
	cmd := &cobra.Command{Use: "run"}
	f.add(cmd)
	var faults invalid
	for _, name := range slices.Sorted(maps.Keys(settings)) {
		if err := setPreRegistered(cmd, name, settings[name]); err != nil {
			faults = append(faults, preRegisteredConfig+": "+oneLine(err.Error()))
		}
	}
	if len(faults) > 0 {
		return nil, faults
	}
	if err := f.resolve(cmd, env); err != nil {
		return nil, err
	}
	// The runtime does not start if a program beside its plugins, such as pacemaker-cni, has no name of a plugin.
	f.Programs = filepath.Dir(cmp.Or(f.GatePath, cmd.Flags().Lookup("gate-path").DefValue))
	return f, nil
}

func setPreRegistered(cmd *cobra.Command, name string, value any) error {
	if cmd.Flags().Lookup(name) == nil || slices.Contains(notPreRegistered, name) {
		return fmt.Errorf("%s: unknown setting; the settings are the flags of `run` except %s", name, strings.Join(notPreRegistered[:3], ", "))
	}
	switch value.(type) {
	case string, bool, float64: // the type of every number here
	default:
		return fmt.Errorf("%s: must be a string, a number, true or false", name)
	}
	if err := cmd.Flags().Set(name, fmt.Sprint(value)); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}
