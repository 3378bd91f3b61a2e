package main

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/costs"
)

const costsLong = `Costs shows what starts took on this node, until their pods were ready. The daemon
expects of the next start what it learned of the first of these that it knows: the
same owner with the same template and CPU limit; the same images, commands and CPU
limit; another template of the same owner; all starts of the namespace. None of them
comes from another namespace. Restarts after a crash have entries of their own.

Each figure is a mean; the figure behind +- is the mean deviation. CPU is the CPU
time. IDLE is the time until the start first kept a CPU busy, without that in which it
waited for one. PEAK is how many CPUs it wanted. ALONE is how long it takes alone:
IDLE, and then CPU at PEAK. DISK is what it read and wrote. STARTS is 0 where probes
killed all of them: they take at least what the figures say.`

func (p *program) costsCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "costs", Short: "Show what starts took on this node", Long: costsLong, Args: cobra.NoArgs,
		Example: "  pod-pacemaker costs\n  pod-pacemaker costs -o json | jq '.costs | map_values(.cpuSeconds.mean)'",
	}
	p.asks(cmd, func(ctx context.Context, daemon *admin.Client) (answer any, text string, err error) {
		learned, err := daemon.Costs(ctx)
		return learned, costsText(time.Now(), learned), err
	})
	return cmd
}

// costsText returns a table of what was learned, the latest first.
func costsText(now time.Time, learned admin.Costs) string {
	title := fmt.Sprintf("learned on %d x %s: %d of at most %d entries\n", learned.Machine.Cores, line(learned.Machine.CPU), len(learned.Costs), costs.MaxKeys)
	keys := slices.SortedFunc(maps.Keys(learned.Costs), func(a, b string) int {
		return cmp.Or(learned.Costs[b].Seen.Compare(learned.Costs[a].Seen), cmp.Compare(a, b))
	})
	t := table{{"STARTS", "CPU", "ALONE", "IDLE", "PEAK", "DISK", "AGO", "OF"}}
	for _, key := range keys {
		c := learned.Costs[key]
		t.add(strconv.Itoa(c.Count), spanText(c.CPU), secondsText(c.Alone()), spanText(c.Idle), fmt.Sprintf("%.1f +- %.1f", c.Peak.Mean, c.Peak.Deviation),
			fmt.Sprintf("%.1f MiB", c.Disk.Mean/(1<<20)), human(now.Sub(c.Seen)), key)
	}
	return title + strings.Join(append(t.lines(), ""), "\n")
}

func spanText(f costs.Figure) string { return secondsText(f.Mean) + " +- " + secondsText(f.Deviation) }

func secondsText(s float64) string { return human(admin.Seconds(s).Duration()) }

// costText returns what a start is expected to take, for a table.
func costText(c *admin.Cost) string {
	switch {
	case c == nil:
		return "-"
	case c.Cost == nil:
		return "unknown"
	}
	return secondsText(c.CPU.Mean) + " CPU, " + costBasis(*c)
}

// costBasis returns how the cost of a start is known.
func costBasis(c admin.Cost) string {
	switch {
	case c.Count == 0:
		return "at least this: probes killed the starts"
	case c.Basis == "Owner":
		return "learned from " + plural(c.Count, "start")
	case c.Basis == "Image":
		return "from its image"
	case c.Basis == "Revisions":
		return "from its other versions"
	default:
		return "unknown: its namespace's mean"
	}
}

// costStory returns what a start is expected to take, for the end of its story. It is empty if the daemon does
// not know the pod.
func costStory(c *admin.Cost) (text string) {
	switch {
	case c == nil:
		return ""
	case c.Cost == nil:
		text = "; its cost is unknown"
	default:
		text = fmt.Sprintf("; expected to take %s of CPU time, %s alone (%s)", secondsText(c.CPU.Mean), secondsText(c.Alone()), costBasis(*c))
	}
	if c.KilledAfterSeconds > 0 {
		text += ", killed by a probe after " + human(c.KilledAfterSeconds.Duration()) + " at the earliest"
	}
	return text
}
