package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// notKnown stands in what `pod-pacemaker why` says of a pod that it does not know.
const notKnown = "not known on this node"

// why writes what a pod waits for: what its daemon says where that knows it, else what keeps
// it from starting otherwise.
func (a *asker) why(ctx context.Context, name string) error {
	args := []string{"pod", name}
	if a.namespace != "" {
		args = append(args, "--namespace", a.namespace)
	}
	var pod corev1.Pod
	if err := a.get(ctx, &pod, args...); err != nil {
		return err
	}
	text := notOurs(pod)
	if text == "" {
		var err error
		if text, err = a.onItsNode(ctx, pod); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintf(a.stdout, "%s/%s: %s\n", pod.Namespace, pod.Name, text)
	return err
}

// notOurs says why the pod is not one that a daemon could know; empty: it could.
func notOurs(pod corev1.Pod) string {
	switch {
	case pod.DeletionTimestamp != nil:
		return "not waiting: it is being deleted"
	case pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed:
		return "not waiting: it has ended (" + strings.TrimRight(string(pod.Status.Phase)+": "+pod.Status.Reason, ": ") + ")"
	case pod.Spec.NodeName != "":
		return ""
	}
	text := "not waiting for pod-pacemaker: Pending for the scheduler"
	if len(pod.Spec.SchedulingGates) > 0 {
		return text + ", which waits until its gate " + pod.Spec.SchedulingGates[0].Name + " is gone"
	}
	if c := condition(pod, corev1.PodScheduled); c != nil && c.Message != "" {
		text += ": " + c.Message
	}
	return text
}

// onItsNode says what the daemon of the pod's node says.
func (a *asker) onItsNode(ctx context.Context, pod corev1.Pod) (string, error) {
	daemons, err := a.daemonsOn(ctx, pod.Spec.NodeName)
	if err != nil {
		return a.byEvents(ctx, pod, err)
	}
	if len(daemons) == 0 {
		return fmt.Sprintf("no daemon was found on node %s, in namespace %s (--daemon-namespace names another), and where none runs, pods do not wait for one: %s",
			pod.Spec.NodeName, a.daemons, otherwise(pod)), nil
	}
	for _, daemon := range daemons {
		said, err := a.in(ctx, daemon, "why", pod.Namespace+"/"+pod.Name)
		switch {
		case err == nil:
			_, own, found := strings.Cut(strings.TrimSpace(said), ": ")
			if !found {
				return "", fmt.Errorf("the daemon %s says %q", daemon.Name, said)
			}
			return own + "; on " + pod.Spec.NodeName, nil
		case !strings.Contains(err.Error(), notKnown):
			return a.byEvents(ctx, pod, err)
		}
	}
	return "not waiting for pod-pacemaker: " + otherwise(pod), nil
}

// byEvents says what the last event of a daemon on the pod says, where the daemon cannot be asked.
func (a *asker) byEvents(ctx context.Context, pod corev1.Pod, cause error) (string, error) {
	var events corev1.EventList
	if err := a.get(ctx, &events, "events", "--namespace", pod.Namespace, "--field-selector", "involvedObject.uid="+string(pod.UID)); err != nil {
		return "", fmt.Errorf("the daemon cannot be asked (%w), nor the pod's events (%w)", cause, err)
	}
	own := slices.DeleteFunc(events.Items, func(e corev1.Event) bool {
		return !strings.HasPrefix(cmp.Or(e.ReportingController, e.Source.Component), "pod-pacemaker")
	})
	slices.SortStableFunc(own, func(x, y corev1.Event) int { return last(x).Compare(last(y)) })
	text := otherwise(pod)
	if len(own) > 0 {
		e := own[len(own)-1]
		text = fmt.Sprintf("its last event says %s: %s", e.Reason, e.Message)
	}
	return fmt.Sprintf("%s (the daemon of %s cannot be asked: %s)", text, pod.Spec.NodeName, firstLine(cause.Error())), nil
}
