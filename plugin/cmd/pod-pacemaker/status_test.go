package main

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

// herd is the status of a node with two slots while pods of a herd start.
func herd() admin.Status {
	l := throttle.New(at(0), throttle.Settings{MaxConcurrent: 2, FillEvery: time.Second, Burst: 5, MaxWait: 4 * time.Minute})
	join := func(i float64, name string, priority int32) *throttle.Ticket {
		return l.Join(at(i), throttle.Request{UID: name, Name: name, Priority: priority})
	}
	web0, web1, web2 := join(0, "default/web-0", 0), join(0.1, "default/web-1", 0), join(0.2, "default/web-2", 0)
	web3, batch, lost := join(0.3, "default/web-3", 0), join(1, "jobs/batch-4x7", -10), join(2, "default/lost", 0)
	web0.TryStart(at(2))
	web1.TryStart(at(2.5))
	web0.End(at(6.2), reasons.Ready)
	web2.TryStart(at(7))
	lost.End(at(8), reasons.Deleted)
	join(9, "kube-system/dns-9", 2000000000).StartExempt(at(9))
	web3.Wait(at(9))
	batch.TryStart(at(9))

	s := admin.NewStatus(at(10), l.Snapshot(at(10)), l.Recent())
	s.Starting[0].Cost, s.Starting[1].Cost, s.Waiting[0].Cost = knownCost, &admin.Cost{Basis: "None"}, costFrom("Image", 3)
	s.Node, s.Version, s.Since = "worker-3", "v0.1.0", at(-7500)
	s.Runtime = admin.Runtime{Name: "containerd", Version: "2.4.2", Socket: "/var/run/nri/nri.sock", Connected: true, Synchronized: true}
	s.PodWatch = &admin.PodWatch{Healthy: true}
	s.Cores = admin.Cores{Usable: 16, Node: 64, Why: "kubepods.slice has CPUs 48-63"}
	s.Config = admin.Config{Name: "default", Origin: "API", Generation: 4}
	s.Gate = admin.Gate{Use: "auto", Path: "/opt/gate", Usable: true, Waiters: 1, TimeoutSeconds: 100}
	s.Refused = admin.Refused{Sandbox: 3, Container: 1, SandboxesLeft: 57}
	return s
}

func TestStatusReadyExitCode(t *testing.T) {
	t.Parallel()
	dir := serve(t, &fixed{status: herd()})
	code, plain, _ := call(t, "status", "--run-dir", dir)
	assert.Zero(t, code)
	assert.Equal(t, plain, says(t, "status", "--ready", "--run-dir", dir))

	dir = serve(t, &fixed{status: herd(), unready: errors.New("the runtime has no NRI")})
	code, stdout, stderr := call(t, "status", "--ready", "-o", "json", "--run-dir", dir)
	assert.Equal(t, exitFailure, code)
	assert.Equal(t, "pod-pacemaker: pods start unpaced: the runtime has no NRI\n", stderr)
	assert.Contains(t, stdout, `"ready": false`)
	code, _, _ = call(t, "status", "--run-dir", dir)
	assert.Zero(t, code, "status without --ready reports it, and succeeds")
}

func TestStatusDrawsAHerd(t *testing.T) {
	t.Parallel()
	assertGolden(t, "status", says(t, "status", "--run-dir", serve(t, &fixed{status: herd()})))
}

func TestStatusSaysThatNoPodIsHeld(t *testing.T) {
	t.Parallel()
	s := herd()
	off := s.Time.Add(42 * time.Minute)
	for want, c := range map[string]admin.Config{
		"Shadow: no pod is held; the tables show what the mode Enforce would do, but for policies of the scope Cluster": {Mode: v1alpha1.ModeShadow},
		"Disabled: no limit is in force, and no pod is held":                                                            {Mode: v1alpha1.ModeDisabled},
		"Disabled: switched off on this node for 42m more, whatever the config says; 'pod-pacemaker on' ends that":      {Mode: v1alpha1.ModeDisabled, OffUntil: off},
	} {
		s.Config, s.Standalone = c, true
		assert.Contains(t, statusText(s), "\n  mode      "+want+"\n")
		assert.Contains(t, statusText(s), ", standalone, up ")
	}
}

// This status has every fault at once.
func TestStatusShowsWhatIsWrong(t *testing.T) {
	t.Parallel()
	s := herd()
	s.Instance, s.Starting, s.Waiting, s.Ended, s.HeldBy = "blue", nil, nil, nil, nil
	s.Runtime = admin.Runtime{Socket: "/var/run/nri/nri.sock", LastError: "no such file\x1b[2J"}
	s.PodWatch.Healthy = false
	s.Unread = []admin.Unread{{What: "PacemakerConfigs", Since: s.Time.Add(-5 * time.Minute), Why: "pacemakerconfigs is forbidden:\nno role"}}
	s.Config = admin.Config{Origin: "None"}
	s.Limits, s.Limit, s.Pace = admin.NoLimits, 0, admin.Pace{}
	s.Gate.Usable, s.Gate.WhyNot = false, "the hook is missing"
	f := &fixed{status: s, unready: errors.New("not connected to containerd")}
	_, stdout, _ := call(t, "status", "--run-dir", serve(t, f))
	assertGolden(t, "status-faults", stdout)
	assert.NotContains(t, stdout, "\x1b")
}

func TestStatusShowsForWhichPodsOthersWait(t *testing.T) {
	t.Parallel()
	s := herd()
	s.Limits = admin.NoLimits
	s.StartAfter = []admin.StartAfter{{For: "kube-system/cilium", State: "Waiting", Until: s.Time.Add(90 * time.Second)}, {For: "vault (app=agent)", State: "Absent"}}
	_, stdout, _ := call(t, "status", "--run-dir", serve(t, &fixed{status: s}))
	assert.Contains(t, stdout, "\n  limits    none\n"+
		"  after     kube-system/cilium: Waiting, pods wait for it for 90s more at most\n"+
		"  after     vault (app=agent): Absent\n")
}

func TestStatusShowsLentSlots(t *testing.T) {
	t.Parallel()
	l := throttle.New(at(0), throttle.Settings{MaxConcurrent: 1, MaxPulling: 3})
	for _, name := range []string{"default/waits-for-database", "default/database"} {
		l.Join(at(0), throttle.Request{UID: name, Name: name}).Wait(at(0))
	}
	l.Lookup("default/waits-for-database").SetStalled(at(6), at(1))
	l.Advance(at(11))
	s := admin.NewStatus(at(12), l.Snapshot(at(12)), nil)
	s.Adaptive = "kept: the pressure is as wanted"
	_, stdout, _ := call(t, "status", "--run-dir", serve(t, &fixed{status: s}))
	assert.Contains(t, stdout, "  lent      1 slot beyond the limit, because no pod with a slot made progress\n")
	assert.Contains(t, stdout, "  pulling   0 of 3\n")
	assert.Contains(t, stdout, "  adaptive  kept: the pressure is as wanted\n")
	assert.Regexp(t, `default/waits-for-database +12s +0s +WithinLimits +yes, no progress +-\n`, stdout)
	assert.Regexp(t, `default/database +1s +11s +SlotLent +yes +-\n`, stdout)
}

func TestNoDaemonIsOneClearSentence(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	for _, args := range [][]string{{"status"}, {"why", "default/web-0"}, {"costs"}, {"alive"}} {
		stderr := fails(t, exitFailure, append(args, "--run-dir", dir)...)
		assert.Equal(t, fmt.Sprintf("pod-pacemaker: no daemon runs on this node: there is no %s/admin.sock; "+
			"start one with 'pod-pacemaker run', or name its folder with --run-dir\n", dir), stderr)
	}
}

func TestStatusSaysWhetherPodsWaitInTheRoom(t *testing.T) {
	t.Parallel()
	for want, room := range map[string]admin.Room{
		"off: pods without a place in the gate are refused and may show an error status; --cni avoids that": {},
		"not installed (--cni=auto): no program; pods without a place in the gate are refused":              {Use: "auto", Wanted: true, WhyNot: "no program"},
		"shut: it changes all the time":                                       {Wanted: true, Installed: true, WhyNot: "it changes all the time"},
		"off: it is the second; pods without a place in the gate are refused": {WhyNot: "it is the second"},
		"2 waiting": {Waiters: 2},
		"0 waiting (--cni=auto); a copy of 10-net.conflist":                                        {Use: "auto", Wanted: true, Installed: true, Source: "10-net.conflist"},
		"1 waiting (--cni=on); a copy of 10-net.conflist; emptied 1 time by changes in its folder": {Use: "on", Wanted: true, Installed: true, Source: "10-net.conflist", Waiters: 1, Emptied: 1},
	} {
		assert.Equal(t, want, roomText(room))
	}
}

func TestStatusCountsTheWaitsInTheGateThatRanOut(t *testing.T) {
	t.Parallel()
	g := admin.Gate{Usable: true, Use: "auto", Waiters: 1, TimeoutSeconds: 100}
	assert.Equal(t, "1 waiting, up to 100s each (auto)", gateText(g))
	g.Expired = 3
	assert.Equal(t, "1 waiting, up to 100s each (auto); 3 waits ran out: RunContainerError, a restart counted and a back-off; --cni, or a longer runtimeRequestTimeout, avoids that", gateText(g))
}
