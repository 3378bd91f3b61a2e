package cni

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// autoHost is a host whose installer decides by itself.
func autoHost(t *testing.T) *host {
	t.Helper()
	h := newHost(t)
	h.o.Use = UseAuto
	h.write("10-net.conflist", lab)
	return h
}

func TestAutoInstallsTheRoomWhereNothingSpeaksAgainstIt(t *testing.T) {
	t.Parallel()
	h := autoHost(t)
	log, hook := logtest.NewNullLogger()
	h.o.Log = log
	assert.Equal(t, State{Installed: true, CopiedFrom: "10-net.conflist"}, h.step(0))
	require.Len(t, hook.AllEntries(), 1)
	assert.FileExists(t, h.ours())
}

// Each reason keeps the room away, takes it out where it comes later, and lets it come back when it is gone.
func TestWhatSpeaksAgainstTheRoomUnderAuto(t *testing.T) {
	t.Parallel()
	for why, change := range map[string]func(h *host) (back func()){
		"Cilium renames":  agent("cilium-cni"),
		"Istio writes":    agent("istio-cni"),
		"Linkerd writes":  agent("linkerd-cni"),
		"Cilium has rena": func(h *host) func() { return h.file("05-old.conf.cilium_bak") },
	} {
		h := autoHost(t)
		log, hook := logtest.NewNullLogger()
		h.o.Log = log
		back := change(h)
		assert.Contains(t, h.step(time.Hour).WhyNot, why)
		assert.NoFileExists(t, h.ours(), why)
		assert.NoFileExists(t, h.program(), why)
		require.Len(t, hook.AllEntries(), 1, "one line says so")
		assert.Equal(t, logrus.InfoLevel, hook.LastEntry().Level, "it is a decision, not a fault")

		back()
		require.True(t, h.step(time.Hour).Installed, why)
		back = change(h)
		assert.Contains(t, h.step(time.Hour).WhyNot, why, "it comes later")
		assert.NoFileExists(t, h.ours(), why)
		back()
		assert.True(t, h.step(time.Hour).Installed, why)

		change(h)
		h.o.Use = UseOn
		assert.True(t, h.step(time.Hour).Installed, "on does not ask: "+why)
	}
}

// agent makes the plugin of an agent the last of the first configuration.
func agent(plugin string) func(h *host) (back func()) {
	return func(h *host) func() {
		require.NoError(h.t, os.WriteFile(filepath.Join(h.o.BinDir, plugin), nil, 0o600))
		h.write("10-net.conflist", `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp"},{"type":"`+plugin+`"}]}`)
		return func() { h.write("10-net.conflist", lab) }
	}
}

// file writes a file to the folder of the configurations.
func (h *host) file(name string) (back func()) {
	h.write(name, "{}")
	return func() { require.NoError(h.t, os.Remove(filepath.Join(h.o.ConfDir, name))) }
}

func TestTheOnlyPluginOfAConfigurationMayBeARival(t *testing.T) {
	t.Parallel()
	require.ErrorContains(t, rival([]byte(`{"cniVersion":"0.3.1","name":"cilium","type":"cilium-cni"}`)), "Cilium renames")
	require.NoError(t, rival([]byte(`{"cniVersion":"0.3.1","name":"net","type":"ptp"}`)))
	require.NoError(t, rival([]byte("nothing")))
}

// A folder that is not mounted, or mounted read-only, is a reason and no error.
func TestAFolderThatCannotBeWrittenIsAReason(t *testing.T) {
	t.Parallel()
	require.NoError(t, readOnly(t.TempDir()))
	require.ErrorContains(t, readOnly("/nowhere"), "the daemon cannot write to /nowhere: no such file")
	h := autoHost(t)
	require.NoError(t, os.RemoveAll(h.o.BinDir))
	assert.Contains(t, h.step(0).WhyNot, "the daemon cannot write to "+h.o.BinDir)
	require.NoError(t, os.RemoveAll(h.o.ConfDir))
	assert.Contains(t, h.step(time.Hour).WhyNot, "no such file")
}

// Istio puts its plugin behind ours. It watches the folder, and writes into the first configuration again.
func TestAutoTakesOutAFileThatAnotherProgramChanged(t *testing.T) {
	t.Parallel()
	h := autoHost(t)
	require.True(t, h.step(0).Installed)
	h.write(FileName, `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp"},{"type":"pacemaker-cni"},{"type":"istio-cni"}]}`)
	for range 3 {
		assert.Contains(t, h.step(time.Hour).WhyNot, "another program or an administrator removed or changed")
		assert.NoFileExists(t, h.ours())
	}
}

// Cilium takes its suffix off when it is uninstalled. The program is gone then, and no pod of the node would start.
func TestAFileThatCiliumRenamedGoesToo(t *testing.T) {
	t.Parallel()
	h := autoHost(t)
	require.True(t, h.step(0).Installed)
	renamed := h.ours() + ".cilium_bak"
	require.NoError(t, os.Rename(h.ours(), renamed))
	assert.Contains(t, h.step(time.Hour).WhyNot, "another program or an administrator removed or changed")
	assert.FileExists(t, renamed, "a later daemon sees by it that Cilium renames files")
	next := New(h.o, func(string) {})
	next.Step(h.now)
	assert.Contains(t, next.State().WhyNot, "Cilium has renamed 00-pod-pacemaker.conflist")
	require.NoError(t, Remove(h.o, 0))
	assert.NoFileExists(t, renamed)
}

func TestAutoTakesTheRoomOutOfAFolderThatKeepsChanging(t *testing.T) {
	t.Parallel()
	h := autoHost(t)
	require.True(t, h.step(0).Installed)
	text := "1"
	for range 12 {
		h.step(lookEvery)
		text += "1"
		h.write("other", text)
		h.step(30 * time.Second)
	}
	assert.Equal(t, State{WhyNot: whyOften}, h.State())
	assert.NoFileExists(t, h.ours())
	for range 3 {
		h.step(lookEvery)
		text += "1"
		h.write("other", text)
		assert.Equal(t, State{WhyNot: whyOften}, h.step(30*time.Second), "changes count while the room is out, too")
	}
	h.step(lookEvery)
	assert.True(t, h.step(quietFor+burst).Installed)
	assert.Empty(t, h.State().WhyNot)
}

// The runtime may read another folder, such as that of k3s, although this one has a configuration of an earlier runtime.
func TestAutoTakesOutARoomThatEveryPodPassesBy(t *testing.T) {
	t.Parallel()
	pods := func(h *host, namespace string) {
		for range passByMost {
			h.Made(h.now, namespace)
		}
	}
	h := autoHost(t)
	pods(h, "default")
	require.True(t, h.step(0).Installed)
	pods(h, "default")
	require.True(t, h.step(passByAfter+1).Installed, "their networks were under way")
	pods(h, systemNamespace)
	require.True(t, h.step(lookEvery).Installed)
	h.Made(h.now, "default")
	require.True(t, h.step(lookEvery).Installed, "too few to tell")
	pods(h, "default")
	assert.Contains(t, h.step(lookEvery).WhyNot, "none came by, so the runtime uses another configuration than the first in "+h.o.ConfDir)
	assert.NoFileExists(t, h.ours())

	h = autoHost(t)
	require.True(t, h.step(0).Installed)
	h.Came()
	h.step(time.Hour)
	pods(h, "default")
	assert.True(t, h.step(time.Hour).Installed, "pods come by")
}

// A daemon that is restarted finds the room in place. It answers no pod before it knows its configuration, which may take
// long: pods leave the room by themselves meanwhile.
func TestPodsPassARoomByOnlyWhileTheDaemonAnswers(t *testing.T) {
	t.Parallel()
	h := autoHost(t)
	require.True(t, h.step(0).Installed)
	answers := make(chan struct{})
	h.o.Answers = answers
	h.Installer = New(h.o, func(string) {})
	require.True(t, h.step(0).Installed)
	pods := func() {
		for range passByMost {
			h.Made(h.now, "default")
		}
	}
	h.step(time.Hour)
	pods()
	require.True(t, h.step(time.Hour).Installed, "they could not come")
	close(answers)
	pods()
	h.step(0)
	pods()
	require.True(t, h.step(passByAfter+1).Installed, "their networks were under way")
	pods()
	assert.False(t, h.step(lookEvery).Installed)
}
