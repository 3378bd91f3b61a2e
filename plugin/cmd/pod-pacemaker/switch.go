package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

const offLong = `Off lets all pods of this node start without waiting, as the mode Disabled does, whatever
the PacemakerConfigs and StartPolicies say. It needs no API server. It ends after --for,
with 'pod-pacemaker on', and when the daemon ends: a new daemon paces again.

While it lasts, 'pod-pacemaker status' and the log say so, the metric
pod_pacemaker_switched_off is 1, and starts count in pod_pacemaker_unpaced_total with
the reason Disabled.`

func (p *program) offCommand() *cobra.Command {
	var span time.Duration
	cmd := &cobra.Command{
		Use:     "off",
		Short:   "Let all pods of this node start without waiting, for a while",
		Long:    offLong,
		Example: "  pod-pacemaker off --for 1h\n  kubectl -n pod-pacemaker exec POD -- pod-pacemaker off --for 30m",
		Args:    cobra.NoArgs,
		PreRunE: func(*cobra.Command, []string) error {
			if span < time.Second || span > admin.MaxOff {
				return invalidUsage("--for: %s: must be from 1s to 24h", span)
			}
			return nil
		},
	}
	p.asks(cmd, func(ctx context.Context, daemon *admin.Client) (answer any, text string, err error) {
		until, err := daemon.SwitchOff(ctx, span)
		return map[string]time.Time{"offUntil": until}, fmt.Sprintf("off until %s: no pod of this node waits\n", until.UTC().Format(time.RFC3339)), err
	})
	cmd.Flags().DurationVar(&span, "for", time.Hour, "how long, at most 24h")
	return cmd
}

func (p *program) onCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "on",
		Short: "End 'pod-pacemaker off'",
		Args:  cobra.NoArgs,
	}
	p.asks(cmd, func(ctx context.Context, daemon *admin.Client) (answer any, text string, err error) {
		_, err = daemon.SwitchOff(ctx, 0)
		return map[string]bool{"on": err == nil}, "on: the config is in force\n", err
	})
	return cmd
}

const admitLong = `Admit lets a pod that waits on this node start now, whatever the limits, the queue and
the StartPolicies say. Its start counts against the limits, so that others wait longer.
A pod that kubelet must try again first starts then. It needs no API server.

The log and the metric pod_pacemaker_admissions_total have it with the reason ByHand.
If nothing holds the pod, the exit code is 1.`

var errNothingToAdmit = errors.New("nothing to admit")

func (p *program) admitCommand() *cobra.Command {
	var pod podArg
	cmd := &cobra.Command{
		Use:     "admit NAMESPACE/POD",
		Short:   "Let a pod that waits start now",
		Long:    admitLong,
		Example: "  pod-pacemaker admit default/web-0",
		Args:    pod.args(),
	}
	p.asks(cmd, func(ctx context.Context, daemon *admin.Client) (answer any, text string, err error) {
		w, err := pod.why(ctx, daemon)
		if err != nil {
			return nil, "", err
		}
		if w.State != throttle.Waiting || w.Shadow {
			return nil, "", fmt.Errorf("%w: %s", errNothingToAdmit, whyLine(w))
		}
		if err := daemon.Admit(ctx, w.UID); err != nil {
			return nil, "", err
		}
		return w, fmt.Sprintf("admitted after %s: %s\n", human(w.WaitedSeconds.Duration()), podName(w.Pod)), nil
	})
	return cmd
}
