package plugin

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
)

// sandboxIn returns a sandbox with this network namespace; empty: it has that of the host.
func sandboxIn(network string) *api.PodSandbox {
	sandbox := &api.PodSandbox{Namespace: "default", Linux: &api.LinuxPodSandbox{Namespaces: []*api.LinuxNamespace{{Type: "ipc"}}}}
	if network != "" {
		sandbox.Linux.Namespaces = append(sandbox.Linux.Namespaces, &api.LinuxNamespace{Type: "network", Path: network})
	}
	return sandbox
}

// Pods that have a network and do not come to the room show that the runtime does not use it.
func TestPodsThatPassTheRoomByCount(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		network   string
		uid       string
		comes     bool
		installed bool
	}{
		"they pass by":           {"/run/netns/cni-1", "u", false, false},
		"in the host's network":  {"", "u", false, true},
		"one came":               {"/run/netns/cni-1", "u", true, true},
		"a hook of the gate did": {"/run/netns/cni-1", "u", false, false},
		"static pods":            {"/run/netns/cni-1", "d41d8cd98f00b204e9800998ecf8427e", false, true},
	} {
		dir := t.TempDir()
		log, _ := logtest.NewNullLogger()
		program := filepath.Join(dir, "program")
		for file, text := range map[string]string{
			program: "#!/bin/true", filepath.Join(dir, "ptp"): "", filepath.Join(dir, "10-net.conflist"): `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp"}]}`,
		} {
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		}
		answers := make(chan struct{})
		close(answers)
		i := cni.New(cni.Options{Use: cni.UseAuto, ConfDir: dir, BinDir: dir, Program: program, Answers: answers, Log: log}, func(string) {})
		long := time.Now().Add(-time.Hour)
		i.Step(long)
		require.True(t, i.State().Installed, i.State().WhyNot)
		passes := roomPasses{Backend: answersAll{}, installer: i}
		_, err := passes.Wait(t.Context(), gate.Hello{Room: c.comes}, nil)
		require.NoError(t, err)
		for range 3 {
			sandbox := sandboxIn(c.network)
			sandbox.Uid = c.uid
			made(i, sandbox)
		}
		i.Step(long.Add(time.Minute))
		assert.Equal(t, c.installed, i.State().Installed, name)
	}
	made(nil, sandboxIn("/run/netns/cni-1")) // there is no room
	_, err := roomPasses{Backend: answersAll{}}.Wait(t.Context(), gate.Hello{Room: true}, nil)
	require.NoError(t, err)
}

// answersAll lets every process go.
type answersAll struct{ gate.Backend }

func (answersAll) Wait(_ context.Context, _ gate.Hello, _ gate.SendForecast) (gate.Verdict, error) {
	return gate.Verdict{Go: true}, nil
}

// A daemon that is killed leaves its files, and the next one may have no room.
func TestNoPodWaitsInARoomThatIsOff(t *testing.T) {
	t.Parallel()
	log, logged := logtest.NewNullLogger()
	d := &Daemon{options: Options{CNI: cni.UseOff, Log: log}}
	passes := d.passesOf(answersNone{})
	for range 2 {
		verdict, err := passes.Wait(t.Context(), gate.Hello{Room: true}, nil)
		require.NoError(t, err)
		assert.True(t, verdict.Go)
	}
	require.Len(t, logged.AllEntries(), 1)
	require.Contains(t, logged.LastEntry().Message, cni.FileName)
	_, err := passes.Wait(t.Context(), gate.Hello{}, nil)
	require.ErrorIs(t, err, context.Canceled, "a hook of the gate waits")
	d.options.CNI = cni.UseAuto
	_, err = d.passesOf(answersNone{}).Wait(t.Context(), gate.Hello{Room: true}, nil)
	require.ErrorIs(t, err, context.Canceled)
}

// answersNone lets no process go.
type answersNone struct{ gate.Backend }

func (answersNone) Wait(context.Context, gate.Hello, gate.SendForecast) (gate.Verdict, error) {
	return gate.Verdict{}, context.Canceled
}

// A process that left the room without a daemon says since when there is none.
func TestADaemonThatAnswersIsNotGone(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	n.stop()
	file := filepath.Join(n.options.RunDir, wire.NoteFolder, wire.GoneFile)
	require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	n.startDaemon()
	isGone := func() bool {
		_, err := os.Stat(file)
		return os.IsNotExist(err)
	}
	n.eventually("the file is gone", isGone)

	// A process may find no daemon just before this one answers, and make the file after it. The next pod takes it away.
	require.NoError(t, os.WriteFile(file, nil, 0o600))
	answer := n.pod("next").comesToRoom(time.Now())
	n.eventually("the daemon answers", func() bool { return len(answer) > 0 })
	assert.True(t, isGone())
}
