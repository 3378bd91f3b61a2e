package main

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// endedShown is how many ended starts are shown.
const endedShown = 10

// statusText returns a status as text.
func statusText(s admin.Status) string {
	lines := headLines(s)
	section := func(always bool, title string, rows []string) {
		if always || len(rows) > 0 {
			lines = append(append(lines, "", title), rows...)
		}
	}
	section(true, "STARTING "+slotsText(admin.NewSlots(s)), startingTable(s.Starting))
	section(true, waitingText(s), waitingTable(s.Waiting))
	section(false, fmt.Sprintf("PREPARING %d, which nothing holds: kubelet pulls their images, or cannot make their first container", len(s.Preparing)),
		preparingTable(s.Preparing))
	section(false, "POLICIES", policiesTable(s.Policies))
	section(false, "SIGNALS", signalsTable(s.Signals))
	section(false, "ENDED LAST", endedTable(s))
	return strings.Join(lines, "\n") + "\n"
}

// coresText says how many CPUs pods can use, and why no more.
func coresText(c admin.Cores) string {
	if c.Why == "" {
		return fmt.Sprintf("pods can use all %d", c.Node)
	}
	return fmt.Sprintf("pods can use %d of %d: %s", c.Usable, c.Node, c.Why)
}

func headLines(s admin.Status) []string {
	where := "cluster"
	if s.Standalone {
		where = "standalone"
	}
	title := fmt.Sprintf("%s: pod-pacemaker %s, %s, up %s", s.Node, s.Version, where, human(s.Time.Sub(s.Since)))
	if s.Instance != "" {
		title += ", instance " + s.Instance
	}
	lines := []string{line(title)}
	if !s.Ready {
		lines = append(lines, line("NOT READY, pods start unpaced: "+s.NotReady))
	}
	entry := func(name, text string) {
		if text != "" {
			lines = append(lines, fmt.Sprintf("  %-9s %s", name, line(text)))
		}
	}
	if s.Runtime.LastError == s.NotReady {
		s.Runtime.LastError = "" // it stands above
	}
	entry("runtime", runtimeText(s.Runtime))
	switch {
	case s.PodWatch == nil:
	case s.PodWatch.Healthy:
		entry("pods", "watched through the API server")
	default:
		entry("pods", "not watched: the daemon judges starts by what it measures on this node")
	}
	for _, u := range s.Unread {
		entry("unread", fmt.Sprintf("%s, for %s: %s", u.What, human(s.Time.Sub(u.Since)), u.Why))
	}
	entry("cores", coresText(s.Cores))
	entry("config", configText(s.Config))
	switch s.Config.Mode {
	case v1alpha1.ModeShadow:
		entry("mode", "Shadow: no pod is held; the tables show what the mode Enforce would do, but for policies of the scope Cluster")
	case v1alpha1.ModeDisabled:
		if until := s.Config.OffUntil; !until.IsZero() {
			entry("mode", fmt.Sprintf("Disabled: switched off on this node for %s more, whatever the config says; 'pod-pacemaker on' ends that", human(until.Sub(s.Time))))
			break
		}
		entry("mode", "Disabled: no limit is in force, and no pod is held")
	}
	if s.Limits == admin.NoLimits && len(s.Policies)+len(s.StartAfter) > 0 {
		s.Limits = "none" // the policies or startAfter hold pods
	}
	entry("limits", s.Limits)
	for _, a := range s.StartAfter {
		entry("after", afterText(s.Time, a))
	}
	entry("gate", gateText(s.Gate))
	entry("room", roomText(s.Room))
	entry("refused", refusedText(s.Refused))
	basis := admin.BasisNone
	if s.Pace.Observed {
		basis = admin.BasisObserved
	}
	if s.Pace.Seconds > 0 {
		entry("pace", fmt.Sprintf("a start about every %s (%s)", human(s.Pace.Seconds.Duration()), basisText(basis)))
	}
	entry("adaptive", s.Adaptive)
	if s.SettledBusy > 0 {
		entry("settled", plural(int(min(s.SettledBusy, math.MaxInt32)), "start")+" over after settleTime while the pod still kept a CPU busy: it needs a readiness probe, or the limit is only a rate")
	}
	if s.PullingLimit > 0 {
		entry("pulling", fmt.Sprintf("%d of %d", s.Pulling, s.PullingLimit))
	}
	if s.Lent > 0 {
		entry("lent", plural(s.Lent, "slot")+" beyond the limit, because no pod with a slot made progress")
	}
	if s.HeldBy != nil {
		entry("held by", strings.TrimSuffix(fmt.Sprintf("%s: %s", s.HeldBy.Reason, s.HeldBy.Detail), ": "))
	}
	return lines
}

// afterText describes pods for which others wait.
func afterText(now time.Time, a admin.StartAfter) string {
	if a.Until.IsZero() {
		return a.For + ": " + a.State
	}
	return fmt.Sprintf("%s: %s, pods wait for it for %s more at most", a.For, a.State, human(a.Until.Sub(now)))
}

func runtimeText(r admin.Runtime) string {
	name := strings.TrimSpace(r.Name + " " + r.Version)
	if name == "" {
		name = r.Socket
	}
	switch {
	case r.Connected && r.Synchronized:
		return strings.TrimSuffix(fmt.Sprintf("%s, connected and synchronized; %s", name, r.TimeoutWarning), "; ")
	case r.Connected:
		return name + ", connected, not synchronized yet"
	case r.LastError != "":
		return fmt.Sprintf("%s, not connected: %s", name, r.LastError)
	default:
		return name + ", not connected"
	}
}

func configText(c admin.Config) string {
	switch {
	case c.Name == "":
		return "none"
	case c.Origin == string(crd.OriginDisk):
		return fmt.Sprintf("%s (from %s, generation %d, until the API server sends the configs and this node)", c.Name, c.Origin, c.Generation)
	case c.Generation > 0:
		return fmt.Sprintf("%s (from %s, generation %d)", c.Name, c.Origin, c.Generation)
	default:
		return fmt.Sprintf("%s (from %s)", c.Name, c.Origin)
	}
}

// roomText describes the waiting room.
func roomText(r admin.Room) string {
	switch {
	case !r.Wanted && r.WhyNot != "" && r.Waiters == 0:
		return "off: " + r.WhyNot + "; pods without a place in the gate are refused"
	case !r.Wanted && r.Waiters == 0:
		return "off: pods without a place in the gate are refused and may show an error status; --cni avoids that"
	case r.Wanted && !r.Installed:
		return fmt.Sprintf("not installed (--cni=%s): %s; pods without a place in the gate are refused", r.Use, r.WhyNot)
	case r.WhyNot != "":
		return "shut: " + r.WhyNot
	case r.Source == "":
		return fmt.Sprintf("%d waiting", r.Waiters)
	case r.Emptied > 0:
		return fmt.Sprintf("%d waiting (--cni=%s); a copy of %s; emptied %s by changes in its folder", r.Waiters, r.Use, r.Source, plural(r.Emptied, "time"))
	default:
		return fmt.Sprintf("%d waiting (--cni=%s); a copy of %s", r.Waiters, r.Use, r.Source)
	}
}

func gateText(g admin.Gate) string {
	if !g.Usable {
		return "not used: " + g.WhyNot
	}
	text := fmt.Sprintf("%d waiting, up to %s each (%s)", g.Waiters, human(g.TimeoutSeconds.Duration()), g.Use)
	if g.Expired > 0 {
		text += fmt.Sprintf("; %s ran out: RunContainerError, a restart counted and a back-off; --cni, or a longer runtimeRequestTimeout, avoids that", plural(int(g.Expired), "wait"))
	}
	return text
}

func refusedText(r admin.Refused) string {
	if r.NotAtSandbox != "" {
		return fmt.Sprintf("%d at the container, where they are errors to controllers; the waiting room avoids that (none at the sandbox: %s)", r.Container, r.NotAtSandbox)
	}
	return fmt.Sprintf("%d at the sandbox (now up to %d more), %d at the container", r.Sandbox, r.SandboxesLeft, r.Container)
}

func slotsText(s admin.Slots) string {
	text := strconv.Itoa(s.Used)
	if s.Of > 0 {
		text = fmt.Sprintf("%d of %d", s.Used, s.Of)
	}
	if s.Without > 0 {
		text += fmt.Sprintf(", and %d without a slot", s.Without)
	}
	return text
}

// waitingText returns the length of the queue and its longest wait.
func waitingText(s admin.Status) string {
	text := fmt.Sprintf("WAITING %d", len(s.Waiting))
	if longest := s.LongestWait(); longest > 0 {
		text += fmt.Sprintf(", the longest for %s of %s", human(longest.Duration()), human(s.MaxWaitSeconds.Duration()))
	}
	return text
}

func startingTable(pods []admin.Pod) []string {
	t := table{{"POD", "FOR", "WAITED", "ADMITTED", "SLOT", "TAKES"}}
	for _, p := range pods {
		slot := "yes"
		switch {
		case !p.Slot:
			slot = "no"
		case !p.NoProgressSince.IsZero():
			slot = "yes, no progress"
		}
		t.add(podName(p), human(p.StartSeconds.Duration()), human(p.WaitedSeconds.Duration()), string(p.Admission), slot, costText(p.Cost))
	}
	return t.lines()
}

func preparingTable(pods []admin.Pod) []string {
	t := table{{"PLACE", "POD", "PRIORITY", "FOR", "TAKES"}}
	for _, p := range pods {
		t.add(strconv.Itoa(p.Place), podName(p), strconv.Itoa(int(p.Priority)), human(p.Since.Sub(p.Joined)), costText(p.Cost))
	}
	return t.lines()
}

func waitingTable(pods []admin.Pod) []string {
	t := table{{"PLACE", "POD", "PRIORITY", "FOR", "AT", "EXPECTED IN", "TAKES", "WAITS FOR"}}
	for _, p := range pods {
		where, expected := "kubelet", "-"
		switch {
		case p.InRoom:
			where = "room"
		case p.Present:
			where = "gate"
		}
		if p.ExpectedSeconds > 0 {
			expected = human(p.ExpectedSeconds.Duration())
		}
		t.add(strconv.Itoa(p.Place), podName(p), strconv.Itoa(int(p.Priority)), human(p.WaitedSeconds.Duration()),
			where, expected, costText(p.Cost), waitsFor(p))
	}
	return t.lines()
}

func endedTable(s admin.Status) []string {
	t := table{{"POD", "AGO", "WAITED", "TOOK", "END"}}
	for _, p := range s.Ended[:min(len(s.Ended), endedShown)] {
		took := "-"
		if p.StartSeconds > 0 {
			took = human(p.StartSeconds.Duration())
		}
		t.add(podName(p), human(s.Time.Sub(p.Ended)), human(p.WaitedSeconds.Duration()), took, endText(p))
	}
	return t.lines()
}

// endText returns how a start ended, and marks one that did not make its pod ready.
func endText(p admin.Pod) string {
	switch p.Reason {
	case reasons.Ready, reasons.Settled, reasons.Inferred, reasons.Completed:
		return string(p.Reason)
	case reasons.Stuck, reasons.CrashLoop, reasons.Exited, reasons.Failed, reasons.Lapsed:
		return "not ready: " + string(p.Reason)
	default:
		return "gone: " + string(p.Reason)
	}
}
