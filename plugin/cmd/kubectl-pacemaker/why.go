package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
)

// notKnown is part of the error of `pod-pacemaker why` about an unknown pod.
const notKnown = "not known on this node"

// notWaiting begins the answer about a pod that no limit holds, also the answer of `pod-pacemaker why`.
const notWaiting = "not waiting for pod-pacemaker"

// why writes what a pod waits for, as its daemon reports. If the daemon does not know the pod, it writes what
// else keeps the pod from starting.
func (a *asker) why(ctx context.Context, name string) error {
	args := []string{"pod", name}
	if a.namespace != "" {
		args = append(args, "--namespace", a.namespace)
	}
	var pod corev1.Pod
	if err := a.get(ctx, &pod, args...); err != nil {
		return err
	}
	text, answer := notOurs(pod), ""
	if text == "" {
		var err error
		if text, answer, err = a.onItsNode(ctx, pod); err != nil {
			return err
		}
	}
	if a.json {
		if answer == "" {
			return fmt.Errorf("%s/%s: no daemon answers: %s", pod.Namespace, pod.Name, text)
		}
		_, err := io.WriteString(a.stdout, answer)
		return err
	}
	_, err := fmt.Fprintln(a.stdout, oneLine(fmt.Sprintf("%s/%s: %s", pod.Namespace, pod.Name, text)))
	return err
}

// notOurs returns why no daemon can know the pod; empty if one can.
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
	if message := condition(pod, corev1.PodScheduled).Message; message != "" {
		text += ": " + message
	}
	return text
}

// onItsNode returns what the daemon on the pod's node says of it, or else what its events or status say. answer is the
// daemon's own, in the output format; empty if it has none.
func (a *asker) onItsNode(ctx context.Context, pod corev1.Pod) (text, answer string, err error) {
	daemons, err := a.daemonsOn(ctx, pod.Spec.NodeName)
	if err != nil {
		text, err = a.byEvents(ctx, pod, err)
		return text, "", err
	}
	for _, daemon := range daemons {
		answer, err := a.throughAPIServer(ctx, daemon, pod)
		if err != nil && !strings.Contains(err.Error(), notKnown) {
			proxied := err
			if answer, err = a.in(ctx, daemon, "why", pod.Namespace+"/"+pod.Name); err != nil && !errors.Is(proxied, errNotServed) {
				err = fmt.Errorf("%w; %w", proxied, err)
			}
		}
		switch {
		case err == nil && a.json:
			return "", answer, nil
		case err == nil:
			_, own, found := strings.Cut(strings.TrimSpace(answer), ": ")
			if !found {
				return "", "", fmt.Errorf("the daemon %s answers %q", daemon.Name, answer)
			}
			if strings.HasPrefix(own, notWaiting) {
				own += "; " + otherwise(pod)
			}
			return own + "; on " + pod.Spec.NodeName, answer, nil
		case !strings.Contains(err.Error(), notKnown):
			text, err = a.byEvents(ctx, pod, err)
			return text, "", err
		}
	}
	return notWaiting + ": " + otherwise(pod), "", nil
}

// byEvents returns the last event of a daemon about the pod, for when the daemon cannot be asked. If the pod has started
// since, that event is over, and byEvents returns what the status reports.
func (a *asker) byEvents(ctx context.Context, pod corev1.Pod, cause error) (string, error) {
	var events corev1.EventList
	if err := a.get(ctx, &events, "events", "--namespace", pod.Namespace, "--field-selector", "involvedObject.uid="+string(pod.UID)); err != nil {
		return "", fmt.Errorf("the daemon cannot be asked (%w), nor the pod's events (%w)", cause, err)
	}
	own := slices.DeleteFunc(events.Items, func(e corev1.Event) bool {
		return !strings.HasPrefix(e.Source.Component, "pod-pacemaker")
	})
	// The times have whole seconds. Of two events in one second, the later in the list is the newer one.
	slices.SortStableFunc(own, func(x, y corev1.Event) int { return x.LastTimestamp.Compare(y.LastTimestamp.Time) })
	text := otherwise(pod)
	if len(own) > 0 && !ready(pod) && !hasRunSince(pod, own[len(own)-1].LastTimestamp) {
		e := own[len(own)-1]
		text = fmt.Sprintf("its last event, %s ago, is %s: %s", duration.HumanDuration(time.Since(e.LastTimestamp.Time)), e.Reason, e.Message)
	}
	return fmt.Sprintf("%s (the daemon of %s cannot be asked: %s)", text, pod.Spec.NodeName, oneLine(cause.Error())), nil
}

// hasRunSince returns whether a container of the pod has begun to run at that time or later.
func hasRunSince(pod corev1.Pod, when metav1.Time) bool {
	for _, c := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		for _, s := range []corev1.ContainerState{c.State, c.LastTerminationState} {
			if s.Running != nil && !s.Running.StartedAt.Before(&when) || s.Terminated != nil && !s.Terminated.StartedAt.Before(&when) {
				return true
			}
		}
	}
	return false
}

// otherwise returns why a pod that no limiter holds does not run, as its status reports.
func otherwise(pod corev1.Pod) string {
	if ready(pod) {
		return "it is ready"
	}
	for _, statuses := range [][]corev1.ContainerStatus{pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses} {
		for _, c := range statuses {
			if w := c.State.Waiting; w != nil && w.Reason != "" && w.Reason != "PodInitializing" {
				return oneLine(fmt.Sprintf("container %s: %s: %s", c.Name, w.Reason, w.Message))
			}
		}
	}
	for _, c := range pod.Status.ContainerStatuses {
		if c.State.Running != nil && !c.Ready {
			return fmt.Sprintf("container %s runs, and its readiness probe has not succeeded yet", c.Name)
		}
	}
	if pod.Status.Message != "" {
		return oneLine(pod.Status.Message)
	}
	return "it is " + string(pod.Status.Phase) + ", and its status has no reason"
}

// oneLine returns text from outside as one line of at most 4 KiB, without a colon at its end.
func oneLine(s string) string { return strings.TrimRight(plain.Line(s, 4<<10), ": ") }
