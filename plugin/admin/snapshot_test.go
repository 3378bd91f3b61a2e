package admin

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func at(seconds float64) time.Time {
	return noon.Add(time.Duration(seconds * float64(time.Second)))
}

// herd is a limiter with two starts at a time. web-0 has started, web-1 and web-2 are starting, and an exempt pod
// starts without a slot. web-3 waits in the gate, web-4 was refused, and web-5 was deleted while it waited.
func herd(t *testing.T) *throttle.Limiter {
	t.Helper()
	l := throttle.New(at(0), throttle.Settings{MaxConcurrent: 2, FillEvery: 100 * time.Millisecond, Burst: 5})
	tickets := map[string]*throttle.Ticket{}
	for i := range 6 {
		name := "web-" + strconv.Itoa(i)
		tickets[name] = l.Join(at(float64(i)), throttle.Request{UID: "uid-" + name, Name: "default/" + name})
	}
	for _, name := range []string{"web-0", "web-1"} {
		require.True(t, tickets[name].TryStart(at(7)).Granted)
	}
	tickets["web-0"].End(at(11), reasons.Ready)
	require.True(t, tickets["web-2"].TryStart(at(12)).Granted)
	l.Join(at(12.5), throttle.Request{UID: "uid-dns", Name: "kube-system/dns", Priority: 2000000000}).StartExempt(at(12.5))
	tickets["web-3"].Wait(at(13))
	require.False(t, tickets["web-4"].TryStart(at(13.5)).Granted)
	tickets["web-5"].End(at(14), reasons.Deleted)
	return l
}

func assertGolden(t *testing.T, name string, got any) {
	t.Helper()
	text, err := json.MarshalIndent(got, "", "  ")
	require.NoError(t, err)
	text = append(text, '\n')
	path := filepath.Join("testdata", name)
	if *update {
		require.NoError(t, os.WriteFile(path, text, 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err)
	if !bytes.Equal(want, text) {
		assert.Equal(t, string(want), string(text))
	}
}

// Other programs read the names and units in this file.
func TestStatusOfAHerd(t *testing.T) {
	t.Parallel()
	l := herd(t)
	s := NewStatus(at(15), l.Snapshot(at(15)), l.Recent())
	two := int32(2)
	spec := v1alpha1.PacemakerConfigSpec{ThrottleConfig: v1alpha1.ThrottleConfig{MaxConcurrent: &v1alpha1.MaxConcurrent{Value: &two}}}
	s.Node, s.Instance, s.Version, s.Since = "node-1", "blue", "v1.2.3", at(-60)
	s.NotReady = "not connected to containerd"
	s.Runtime = Runtime{
		Name: "containerd", Version: "2.4.2", Socket: "/var/run/nri/nri.sock",
		Connected: true, Synchronized: true, LastError: "connection lost",
	}
	s.PodWatch = &PodWatch{Healthy: true}
	s.Config = Config{Name: "default", Origin: "API", Generation: 4, Mode: v1alpha1.ModeEnforce, Spec: &spec}
	s.Gate = Gate{Use: "auto", Path: "/opt/gate", Usable: true, WhyNot: "-", Waiters: 1, TimeoutSeconds: 100}
	s.Refused = Refused{Sandbox: 3, Container: 1, SandboxesLeft: 57}
	assertGolden(t, "status.json", s)
}

func TestStatusOfAnIdleNodeHasEmptyLists(t *testing.T) {
	t.Parallel()
	l := throttle.New(at(0), throttle.Settings{})
	s := NewStatus(at(1), l.Snapshot(at(1)), l.Recent())
	assert.Nil(t, s.HeldBy)
	assert.Equal(t, NoLimits, s.Limits)
	assert.InDelta(t, 600, float64(s.MaxWaitSeconds), 0)
	text, err := json.Marshal(s)
	require.NoError(t, err)
	assert.Contains(t, string(text), `"starting":[],"waiting":[],"ended":[]`)
}

// A client of the same version decodes the whole status of a daemon.
func TestStatusSurvivesEncoding(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("testdata", "status.json"))
	require.NoError(t, err)
	var s Status
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&s))
	assertGolden(t, "status.json", s)
}

func TestWhy(t *testing.T) {
	t.Parallel()
	l := herd(t)
	s := NewStatus(at(15), l.Snapshot(at(15)), l.Recent())
	why := func(name string) Why {
		w, err := s.Why("default", name)
		require.NoError(t, err)
		return w
	}

	waiting := why("web-4")
	assert.Equal(t, []any{throttle.Waiting, reasons.Concurrency, "2 of 2 starting", 2, 2, false, true},
		[]any{waiting.State, waiting.Reason, waiting.Held.Detail, waiting.Place, waiting.Of, waiting.Present, waiting.PaceObserved})
	assert.InDelta(t, 11, float64(waiting.WaitedSeconds), 0)
	assert.Positive(t, waiting.ExpectedSeconds)

	started := why("web-0")
	assert.Equal(t, throttle.Started, started.State)
	assert.Equal(t, reasons.Ready, started.Reason)
	assert.InDelta(t, 7, float64(started.WaitedSeconds), 0)
	assert.InDelta(t, 4, float64(started.StartSeconds), 0)
	assert.Zero(t, started.Place)

	_, err := s.Why("other", "web-3")
	require.ErrorIs(t, err, ErrUnknownPod)
	require.EqualError(t, err, "other/web-3: not known on this node: it neither waits nor starts, and did neither lately")

	gone := why("web-5")
	assert.Equal(t, throttle.Gone, gone.State)
	assert.InDelta(t, 9, float64(gone.WaitedSeconds), 0)
	assert.Zero(t, gone.StartSeconds)
}

// A start that was under way when the daemon began may have been over by then.
func TestHowLongAnAdoptedStartTookIsNotSaid(t *testing.T) {
	t.Parallel()
	l := throttle.New(at(0), throttle.Settings{MaxConcurrent: 2})
	for name, reason := range map[string]reasons.Reason{"ready": reasons.Ready, "stuck": reasons.Stuck} {
		l.Adopt(at(9), throttle.Request{UID: name, Name: "default/" + name}, at(2)).End(at(10), reason)
	}
	l.Adopt(at(9), throttle.Request{UID: "starts", Name: "default/starts"}, at(2))
	s := NewStatus(at(15), l.Snapshot(at(15)), l.Recent())
	for name, took := range map[string]Seconds{"ready": 0, "stuck": 8, "starts": 13} {
		w, err := s.Why("default", name)
		require.NoError(t, err)
		assert.InDelta(t, float64(took), float64(w.StartSeconds), 0, name)
	}
}

func TestSeconds(t *testing.T) {
	t.Parallel()
	assert.InDelta(t, 1.235, float64(seconds(1234567*time.Microsecond)), 1e-9)
	assert.Equal(t, 1235*time.Millisecond, Seconds(1.235).Duration())
}
