//go:build e2e

package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// identity finds the ID of a sandbox or of a container, or the name of a sandbox's
// network namespace.
var identity = regexp.MustCompile(`[0-9a-f]{64}|cni-[0-9a-f-]{36}`)

// assertNothingLeft waits until nothing is left beyond what was there before, and
// gives how many things of each kind containerd forgot.
//
// Without this daemon, too, a containerd that is killed leaves things behind: the network
// namespace, a mount, of a sandbox of which it had not stored yet that it has one; and the
// shim for which it had not written yet how to reach it (bootstrap.json). So does one whose
// caller, a kubelet that is killed, takes back its request: a shim that was not told to end,
// or will not, as it still has the container that containerd gave up. Five minutes of chaos
// with no daemon at all, with 19 kills of containerd, left two such namespaces, and three
// shims, one of each of these kinds. No process was under any of them.
//
// This is tolerated where the daemon can have no part in it: a mount or a cgroup of a
// sandbox that no plugin was told of, and a shim of a sandbox of which nothing had to wait
// that was not let in in the end. Of all other sandboxes nothing may be left, and neither
// may any process, hook or file, nor a sandbox or a container that CRI knows.
func (d *daemon) assertNothingLeft(t *testing.T, before remains) (kinds map[string]int) {
	t.Helper()
	var ours, forgotten []string
	t.Cleanup(func() {
		if t.Failed() && len(ours)+len(forgotten) > 0 {
			t.Logf("left:\n%s\nforgotten by containerd:\n%s", strings.Join(ours, "\n"), strings.Join(forgotten, "\n"))
			logMentions(t, append(ours, forgotten...))
		}
	})
	eventually(t, "nothing is left but what containerd forgot", func() bool {
		heard := d.heard(t)
		ours, forgotten = nil, nil
		for _, line := range remaining(t, d).beyond(before) {
			if heard.noPartIn(line) {
				forgotten = append(forgotten, line)
			} else {
				ours = append(ours, line)
			}
		}
		return len(ours) == 0
	})
	kinds = map[string]int{}
	for _, line := range forgotten {
		kind, _, _ := strings.Cut(line, " ")
		kinds[kind]++
	}
	return kinds
}

// heard is what a daemon heard of sandboxes, and did to them.
type heard struct {
	log string
	// waited are the sandboxes that were refused, or of which a container was, or got a
	// hook and was not let in.
	waited map[string]bool
}

var (
	sandboxLine   = regexp.MustCompile(`msg="pod [^"]+: the runtime makes a sandbox" .*refused=true sandbox_id=(\w+)`)
	containerLine = regexp.MustCompile(`msg="pod [^"]+: the runtime makes a container" container_id=(\w+) hook=(\w+) .*refused=(\w+) sandbox_id=(\w+)`)
	letInLine     = regexp.MustCompile(`msg="start of pod [^"]+ admitted after [^"]+" container_id=(\w+)`)
)

func (d *daemon) heard(t *testing.T) heard {
	t.Helper()
	log, err := os.ReadFile(d.LogFile())
	require.NoError(t, err)
	h := heard{log: string(log), waited: map[string]bool{}}
	letIn := map[string]bool{}
	for _, m := range letInLine.FindAllStringSubmatch(h.log, -1) {
		letIn[m[1]] = true
	}
	for _, m := range sandboxLine.FindAllStringSubmatch(h.log, -1) {
		h.waited[m[1]] = true
	}
	made := containerLine.FindAllStringSubmatch(h.log, -1)
	require.NotEmpty(t, made, "lines of the daemon's log that tell of containers")
	for _, m := range made {
		if m[3] == "true" || (m[2] == "true" && !letIn[m[1]]) {
			h.waited[m[4]] = true
		}
	}
	return h
}

// noPartIn tells whether the daemon can have no part in that this is left.
func (h heard) noPartIn(line string) bool {
	kind, _, _ := strings.Cut(line, " ")
	id := identity.FindString(line)
	switch {
	case id == "":
		return false
	case kind == "shim":
		return !h.waited[id]
	}
	return (kind == "mount" || kind == "cgroup") && !strings.Contains(h.log, id)
}

// logMentions writes what containerd's log says of what is left.
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
