package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

const (
	mostAsked = 20 // daemons that are asked for their pods: those of the nodes with the longest waits
	atOnce    = 5  // of them at a time
)

func (a *asker) nodes(ctx context.Context) ([]v1alpha1.PacemakerNode, error) {
	var found v1alpha1.PacemakerNodeList
	err := a.get(ctx, &found, "pacemakernodes.pod-pacemaker.io")
	if err != nil && strings.Contains(err.Error(), "doesn't have a resource type") {
		err = fmt.Errorf("%w: is pod-pacemaker installed?", err)
	}
	if err != nil {
		return nil, err
	}
	return found.Items, nil
}

// status writes a line for each node, and the sums.
func (a *asker) status(ctx context.Context) error {
	nodes, err := a.nodes(ctx)
	if err != nil {
		return err
	}
	if a.json {
		return a.write(nodes)
	}
	if err := a.table(nodes); err != nil {
		return err
	}
	var waiting, starting, unready int
	for _, n := range nodes {
		waiting, starting = waiting+int(n.Status.Waiting), starting+int(n.Status.Starting)
		if !n.Status.Ready {
			unready++
		}
	}
	_, err = fmt.Fprintf(a.stdout, "\nnodes: %d, not ready: %d; pods waiting: %d, starting: %d\n", len(nodes), unready, waiting, starting)
	return err
}

// ofNode runs a command of pod-pacemaker in the daemons of one node, and writes what it prints.
func (a *asker) ofNode(ctx context.Context, node, command string) error {
	daemons, err := a.daemonsOn(ctx, node)
	if err != nil {
		return err
	}
	args := []string{command}
	if a.json {
		args = append(args, "-o", "json")
	}
	for _, daemon := range daemons {
		text, err := a.in(ctx, daemon, args...)
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

// topNodes writes the nodes where pods wait, the longest wait first.
func (a *asker) topNodes(ctx context.Context) error {
	nodes, err := a.waiting(ctx)
	switch {
	case err != nil:
		return err
	case a.json:
		return a.write(nodes)
	case len(nodes) == 0:
		_, err = fmt.Fprintln(a.stdout, nobodyWaits)
		return err
	}
	return a.table(nodes)
}

// waiting returns the nodes where pods wait, the longest wait first.
func (a *asker) waiting(ctx context.Context) ([]v1alpha1.PacemakerNode, error) {
	nodes, err := a.nodes(ctx)
	nodes = slices.DeleteFunc(nodes, func(n v1alpha1.PacemakerNode) bool { return n.Status.Waiting == 0 })
	slices.SortStableFunc(nodes, func(x, y v1alpha1.PacemakerNode) int { return since(x).Compare(since(y)) })
	return nodes, err
}

// since returns when the longest wait of a node began; now if the node does not report it.
func since(n v1alpha1.PacemakerNode) time.Time {
	if n.Status.WaitingSince == nil {
		return time.Now()
	}
	return n.Status.WaitingSince.Time
}

// waitingPod is a pod that waits. It has the JSON names of admin.Pod, whose package builds only
// on Linux.
type waitingPod struct {
	Node          string  `json:"node"`
	Namespace     string  `json:"namespace"`
	Name          string  `json:"name"`
	UID           string  `json:"uid"`
	Place         int     `json:"place"`
	WaitedSeconds float64 `json:"waitedSeconds"`
	Reason        string  `json:"reason"`
	// Held is the measure behind the reason.
	Held *struct {
		Detail string `json:"detail,omitempty"`
	} `json:"held,omitempty"`
}

// topPods writes the pods that have waited longest, the longest wait first.
func (a *asker) topPods(ctx context.Context) error {
	nodes, err := a.waiting(ctx)
	if err != nil {
		return err
	}
	pods, fault := a.podsOf(ctx, nodes[:min(len(nodes), mostAsked)]) // shown in spite of one that could not be asked
	slices.SortStableFunc(pods, func(x, y waitingPod) int { return cmp.Compare(y.WaitedSeconds, x.WaitedSeconds) })
	switch {
	case a.json:
		return errors.Join(a.write(pods), fault)
	case len(pods) == 0 && fault != nil:
		return fault
	case len(pods) == 0:
		_, err = fmt.Fprintln(a.stdout, nobodyWaits)
		return err
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "POD\tNODE\tPLACE\tFOR\tWAITS FOR")
	for _, p := range pods {
		text := p.Reason
		if p.Held != nil && p.Held.Detail != "" {
			text += ": " + p.Held.Detail
		}
		fmt.Fprintf(w, "%s/%s\t%s\t%d\t%s\t%s\n", p.Namespace, p.Name, p.Node, p.Place,
			duration.HumanDuration(time.Duration(p.WaitedSeconds*float64(time.Second))), text)
	}
	return errors.Join(w.Flush(), fault)
}

// podsOf asks the daemons of the nodes which pods wait there. With an error, which is the first one, it also
// returns the pods of the nodes that answered.
func (a *asker) podsOf(ctx context.Context, nodes []v1alpha1.PacemakerNode) (pods []waitingPod, err error) {
	var asked errgroup.Group
	asked.SetLimit(atOnce)
	found := make([][]waitingPod, len(nodes))
	for i, n := range nodes {
		asked.Go(func() (err error) {
			found[i], err = a.waitingOn(ctx, cmp.Or(n.Status.NodeName, n.Name))
			return err
		})
	}
	err = asked.Wait()
	return slices.Concat(found...), err
}

func (a *asker) waitingOn(ctx context.Context, node string) (pods []waitingPod, err error) {
	daemons, err := a.daemonsOn(ctx, node)
	if err != nil {
		return nil, err
	}
	for _, daemon := range daemons {
		text, err := a.in(ctx, daemon, "status", "-o", "json")
		if err != nil {
			return nil, err
		}
		var s struct{ Waiting []waitingPod }
		if err := json.Unmarshal([]byte(text), &s); err != nil {
			return nil, fmt.Errorf("decode the status of the daemon on %s: %w", node, err)
		}
		for _, p := range s.Waiting {
			p.Node = node
			pods = append(pods, p)
		}
	}
	return pods, nil
}

func (a *asker) table(nodes []v1alpha1.PacemakerNode) error {
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NODE\tCONFIG\tMODE\tREADY\tWAITING\tSTARTING\tLIMIT\tLONGEST WAIT\tHELD BY")
	for _, n := range nodes {
		s := n.Status
		longest, limit := "-", "-"
		if s.WaitingSince != nil {
			longest = duration.HumanDuration(time.Since(s.WaitingSince.Time).Round(time.Second))
		}
		if s.Limit > 0 {
			limit = strconv.Itoa(int(s.Limit))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%t\t%d\t%d\t%s\t%s\t%s\n", n.Name, cmp.Or(s.Config, "-"), cmp.Or(string(s.Mode), "-"), s.Ready,
			s.Waiting, s.Starting, limit, longest, cmp.Or(s.HeldBy, "-"))
	}
	return w.Flush()
}

func (a *asker) write(v any) error {
	e := json.NewEncoder(a.stdout)
	e.SetIndent("", "  ")
	return e.Encode(v)
}
