package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
)

// daemonLabel selects the pods of the daemons.
const daemonLabel = "app.kubernetes.io/name=pod-pacemaker"

// container is the name of the daemon's container in its pod.
const container = "pod-pacemaker"

// kubectlLog matches the lines that kubectl logs, like "E0709 12:34:56.789012    4242 memcache.go:265] ...". Without a
// cluster it logs several, and then says the same in a line for the user.
var kubectlLog = regexp.MustCompile(`(?m)^[IWEF]\d{4} [\d:.]+ +\d+ \S+\] .*\n?`)

// complaint returns what kubectl has written to standard error, without its log.
func complaint(stderr string) string {
	return strings.TrimSpace(kubectlLog.ReplaceAllString(stderr, ""))
}

// realKubectl runs kubectl. The error has what kubectl writes to standard error.
func realKubectl(ctx context.Context, args ...string) (string, error) {
	out, err := exec.CommandContext(ctx, "kubectl", args...).Output() //nolint:gosec // no shell reads them, and the user could run it as well
	if failed, ok := errors.AsType[*exec.ExitError](err); ok && complaint(string(failed.Stderr)) != "" {
		return "", errors.New(complaint(string(failed.Stderr)))
	}
	return string(out), err
}

// args returns the arguments of kubectl with the flags that are passed on before them.
func (a *asker) args(args ...string) (flags []string) {
	a.passedOn.VisitAll(func(f *pflag.Flag) {
		values := []string{f.Value.String()}
		if list, ok := f.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, value := range values {
			if f.Changed {
				flags = append(flags, "--"+f.Name+"="+value)
			}
		}
	})
	return append(flags, args...)
}

// get reads objects with kubectl get.
func (a *asker) get(ctx context.Context, into any, args ...string) error {
	text, err := a.kubectl(ctx, a.args(append([]string{"get", "-o", "json"}, args...)...)...)
	if err != nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("decode the output of kubectl: %w", err)
	}
	return nil
}

// daemonsOn returns the pods of the daemons on a node: those that are ready, or all if none is. If there is none, it returns
// an error.
func (a *asker) daemonsOn(ctx context.Context, node string) ([]corev1.Pod, error) {
	var found corev1.PodList
	if err := a.get(ctx, &found, "pods", "--namespace", a.daemons, "--selector", daemonLabel, "--field-selector", "spec.nodeName="+node); err != nil {
		return nil, err
	}
	found.Items = slices.DeleteFunc(found.Items, func(p corev1.Pod) bool {
		return p.Status.Phase == corev1.PodFailed // such as one that kubelet evicted, beside the one that runs
	})
	if len(found.Items) == 0 {
		return nil, fmt.Errorf("no daemon runs in a pod on node %s: namespace %s, set by --daemon-namespace, has none with the label %s there. Without a daemon no pod waits; ask one that the host runs with 'pod-pacemaker status' on that node",
			node, a.daemons, daemonLabel)
	}
	if slices.ContainsFunc(found.Items, ready) {
		found.Items = slices.DeleteFunc(found.Items, func(p corev1.Pod) bool { return !ready(p) })
	}
	return found.Items, nil
}

// in runs pod-pacemaker in the pod of a daemon. If a.json is true, the answer is JSON.
func (a *asker) in(ctx context.Context, daemon corev1.Pod, args ...string) (string, error) {
	run := a.args("exec", "--namespace", daemon.Namespace, daemon.Name, "--container", container, "--", "pod-pacemaker")
	run = append(run, args...)
	if a.json {
		run = append(run, "-o", "json")
	}
	return a.kubectl(ctx, run...)
}

func ready(pod corev1.Pod) bool {
	return condition(pod, corev1.PodReady).Status == corev1.ConditionTrue
}

// condition returns a condition of the pod; the zero value if it has none of that type.
func condition(pod corev1.Pod, kind corev1.PodConditionType) (found corev1.PodCondition) {
	for _, c := range pod.Status.Conditions {
		if c.Type == kind {
			found = c
		}
	}
	return found
}
