package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

func (a *asker) nodes(ctx context.Context) ([]v1alpha1.PacemakerNode, error) {
	var found struct {
		Items []v1alpha1.PacemakerNode `json:"items"`
	}
	err := a.get(ctx, &found, "pacemakernodes.pod-pacemaker.io")
	if err != nil && strings.Contains(err.Error(), "doesn't have a resource type") {
		err = fmt.Errorf("%w: is pod-pacemaker installed?", err)
	}
	return found.Items, err
}

// gone returns whether the node's daemon has been silent for so long that what it wrote last no longer counts.
func gone(n v1alpha1.PacemakerNode) bool {
	return n.Status.LastReportTime != nil && time.Since(n.Status.LastReportTime.Time) > v1alpha1.NodeGoneAfter
}

// paced returns whether the pods of a node are paced, and why they are not, or what restricts that.
func paced(n v1alpha1.PacemakerNode) (isReady bool, message string) {
	c := meta.FindStatusCondition(n.Status.Conditions, v1alpha1.ConditionReady)
	if c == nil {
		return false, ""
	}
	return c.Status == metav1.ConditionTrue, c.Message
}

// status writes a line for each node, and the sums.
func (a *asker) status(ctx context.Context) error {
	nodes, err := a.nodes(ctx)
	if err != nil {
		return err
	}
	if err := a.list(nodes); err != nil || a.json {
		return err
	}
	var waiting, starting, unready, silent int
	for _, n := range nodes {
		if gone(n) {
			silent++
			continue
		}
		waiting, starting = waiting+int(n.Status.Waiting), starting+int(n.Status.Starting)
		if isReady, _ := paced(n); !isReady {
			unready++
		}
	}
	_, err = fmt.Fprintf(a.stdout, "\nnodes: %d, not ready: %d, gone: %d; pods waiting: %d, starting: %d\n", len(nodes), unready, silent, waiting, starting)
	return err
}

// ofNode runs pod-pacemaker status in the daemons of one node, and writes what it prints.
func (a *asker) ofNode(ctx context.Context, node string) error {
	daemons, err := a.daemonsOn(ctx, node)
	if err != nil {
		return err
	}
	for _, daemon := range daemons {
		text, err := a.in(ctx, daemon, "status")
		if err != nil {
			return err
		}
		if _, err := io.WriteString(a.stdout, text); err != nil {
			return err
		}
	}
	return nil
}

// nobodyWaits states how old the answer may be, because pods may have begun to wait since; see package report.
const nobodyWaits = "no pod waits on any node; nodes report up to 10 s late, and later in clusters of over 1,000 nodes"

// top writes the nodes where pods wait, the longest wait first. It only counts nodes whose daemon is gone.
func (a *asker) top(ctx context.Context) error {
	nodes, err := a.nodes(ctx)
	if err != nil {
		return err
	}
	all := len(nodes)
	nodes = slices.DeleteFunc(nodes, gone)
	silent := all - len(nodes)
	nodes = slices.DeleteFunc(nodes, func(n v1alpha1.PacemakerNode) bool { return n.Status.WaitingSince == nil })
	slices.SortStableFunc(nodes, func(x, y v1alpha1.PacemakerNode) int {
		return x.Status.WaitingSince.Compare(y.Status.WaitingSince.Time)
	})
	if len(nodes) > 0 || a.json {
		err = a.list(nodes)
	} else {
		_, err = fmt.Fprintln(a.stdout, nobodyWaits)
	}
	if silent == 0 || a.json || err != nil {
		return err
	}
	_, err = fmt.Fprintf(a.stdout, "\ngone: %d; 'kubectl pacemaker status' shows since when\n", silent)
	return err
}

// list writes the nodes in the output format.
func (a *asker) list(nodes []v1alpha1.PacemakerNode) error {
	if a.json {
		e := json.NewEncoder(a.stdout)
		e.SetIndent("", "  ")
		return e.Encode(nodes)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	row := func(cells ...string) {
		for i := range cells {
			cells[i] = cmp.Or(oneLine(cells[i]), "-")
		}
		fmt.Fprintln(w, strings.Join(cells, "\t"))
	}
	row("NODE", "CONFIG", "MODE", "READY", "WAITING", "STARTING", "LIMIT", "LONGEST WAIT", "HELD BY", "MESSAGE")
	for _, n := range nodes {
		s := n.Status
		if gone(n) {
			row(n.Name, "", "", "gone", "", "", "", "", "", "its daemon has not reported since "+s.LastReportTime.UTC().Format(time.RFC3339))
			continue
		}
		var longest, limit string
		isReady, message := paced(n)
		if s.WaitingSince != nil {
			longest = duration.HumanDuration(time.Since(s.WaitingSince.Time).Round(time.Second))
		}
		if s.Limit > 0 {
			limit = strconv.Itoa(int(s.Limit))
		}
		row(n.Name, s.Config, string(s.Mode), strconv.FormatBool(isReady), strconv.Itoa(int(s.Waiting)), strconv.Itoa(int(s.Starting)), limit, longest, s.HeldBy, message)
	}
	return w.Flush()
}
