//go:build e2e

package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// identity matches the ID of a sandbox or container, or the name of a sandbox's network namespace.
var identity = regexp.MustCompile(`[0-9a-f]{64}|cni-[0-9a-f-]{36}`)

// assertNothingLeft waits until only the things that existed before remain. It returns the number
// of remaining things of each kind that containerd forgot.
//
// Also without this daemon, a killed containerd leaves things behind: the network namespace, a
// mount, of a sandbox if it has not stored the namespace yet, and a shim if it has not written the
// shim's address yet (bootstrap.json). A killed kubelet takes back its request, which can leave a
// shim: containerd did not tell the shim to end, or the shim still has the container that
// containerd gave up. Five minutes of chaos without a daemon, with 19 kills of containerd, left two
// such namespaces, and three shims, one of each of these kinds. No process ran in any of them.
//
// assertNothingLeft tolerates only what the daemon cannot have caused: a mount or a cgroup of a
// sandbox that no plugin saw, and a shim of a sandbox whose last container did not wait or was
// admitted in the end. Of what its refusals cause, it tolerates two shims whose task containerd
// deleted twice at the same time, by its log. Nothing may remain of other sandboxes. No process,
// hook or file may remain, and no sandbox or container that CRI lists.
func (d *daemon) assertNothingLeft(t *testing.T, before remains) (kinds map[string]int) {
	t.Helper()
	var ours, forgotten []string
	t.Cleanup(func() {
		if t.Failed() && len(ours)+len(forgotten) > 0 {
			figure(t, "left: %s; forgotten by containerd: %s", strings.Join(ours, ", "), strings.Join(forgotten, ", "))
			logMentions(t, append(ours, forgotten...))
		}
	})
	eventually(t, "only what containerd forgot is left", func() bool {
		heard := d.heard(t)
		ours, forgotten = nil, nil
		for _, line := range remaining(t, d).beyond(before) {
			if heard.notCausedByDaemon(line) {
				forgotten = append(forgotten, line)
			} else {
				ours = append(ours, line)
			}
		}
		return len(ours) == 0
	})
	kinds = map[string]int{}
	heard, refused := d.heard(t), map[string]bool{}
	for _, line := range forgotten {
		if id := identity.FindString(line); heard.waited[id] && heard.deletedTwice[id] {
			refused[id] = true
		}
		kind, _, _ := strings.Cut(line, " ")
		kinds[kind]++
	}
	require.LessOrEqual(t, len(refused), 2, "shims of refused sandboxes: %s", strings.Join(forgotten, ", "))
	return kinds
}

// heard is what the log of a daemon says of sandboxes.
type heard struct {
	log string
	// deletedTwice are the sandboxes that failed, and whose task containerd therefore deleted twice at
	// the same time. If the second request finds the task deleted but still listed, the shim ignores the
	// request to end, and containerd closes its only connection to it.
	deletedTwice map[string]bool
	// waited are the sandboxes that were refused, or whose last container was refused or has a hook
	// that was not admitted. A container that was refused has never had a task, so it leaves nothing
	// to the next try in its sandbox.
	waited map[string]bool
}

var (
	// A refusal, and a container that is made, waiting or not.
	triedLine = regexp.MustCompile(`msg="pod [^"]+(is refused at the|waits in the gate|: the runtime makes a container)[^"]*" (?:container_id=(\w+) )?.*sandbox_id=(\w+)`)
	// This is from containerd's log.
	deletedTwiceLine = regexp.MustCompile(`msg="failed to delete task" error="[^"]*cannot delete a deleted process[^"]*" id=(\w+)`)
	letInLine        = regexp.MustCompile(`msg="start of pod [^"]+ admitted after [^"]+" container_id=(\w+)`)
)

func (d *daemon) heard(t *testing.T) heard {
	t.Helper()
	log, err := os.ReadFile(d.LogFile())
	require.NoError(t, err)
	runtimeLog, err := os.ReadFile(node.Containerd.LogFile())
	require.NoError(t, err)
	h := heard{log: string(log), deletedTwice: map[string]bool{}, waited: map[string]bool{}}
	for _, m := range deletedTwiceLine.FindAllStringSubmatch(string(runtimeLog), -1) {
		h.deletedTwice[m[1]] = true
	}
	letIn := map[string]bool{}
	for _, m := range letInLine.FindAllStringSubmatch(h.log, -1) {
		letIn[m[1]] = true
	}
	said := map[string]int{}
	for _, m := range triedLine.FindAllStringSubmatch(h.log, -1) {
		what, container, sandbox := m[1], m[2], m[3]
		said[what]++
		h.waited[sandbox] = what == "is refused at the" || what == "waits in the gate" && !letIn[container]
	}
	require.NotEmpty(t, said, "kinds of lines of the daemon's log")
	return h
}

// notCausedByDaemon reports whether the daemon cannot have caused that this thing is left.
func (h heard) notCausedByDaemon(line string) bool {
	kind, _, _ := strings.Cut(line, " ")
	id := identity.FindString(line)
	switch {
	case id == "":
		return false
	case kind == "shim":
		return !h.waited[id] || h.deletedTwice[id]
	}
	return (kind == "mount" || kind == "cgroup") && !strings.Contains(h.log, id)
}

// logMentions logs the lines of containerd's log about the remaining things.
func logMentions(t *testing.T, lines []string) {
	t.Helper()
	log, err := os.ReadFile(node.Containerd.LogFile())
	if err != nil {
		t.Logf("containerd's log: %v", err)
		return
	}
	for _, line := range lines {
		id := identity.FindString(line)
		said := 0
		for text := range strings.Lines(string(log)) {
			if id != "" && strings.Contains(text, id) && said < 12 {
				said++
				t.Logf("containerd: %s", strings.TrimSpace(text))
			}
		}
	}
}
