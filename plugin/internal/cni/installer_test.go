package cni

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const lab = `{"cniVersion":"1.0.0","name":"net","extra":[1],"plugins":[{"type":"ptp","ipam":{"type":"host-local"}}]}`

// host has a node's folders and an installer.
type host struct {
	t *testing.T
	*Installer
	now  time.Time
	shut []string
}

func newHost(t *testing.T) *host {
	t.Helper()
	dir := t.TempDir()
	h := &host{t: t, now: time.Now()}
	answers := make(chan struct{})
	close(answers)
	log := logrus.New()
	log.SetOutput(io.Discard)
	o := Options{
		Use: UseOn, ConfDir: filepath.Join(dir, "net.d"), BinDir: filepath.Join(dir, "bin"), Program: filepath.Join(dir, "program"),
		Socket: "/run/gate.sock", Timeout: 200 * time.Second, Answers: answers, Log: log,
	}
	require.NoError(t, os.Mkdir(o.ConfDir, 0o700))
	require.NoError(t, os.Mkdir(o.BinDir, 0o755))
	for _, name := range []string{"ptp", "bridge", "x"} {
		require.NoError(t, os.Symlink("/plugins-that-the-daemon-cannot-see", filepath.Join(o.BinDir, name)))
	}
	require.NoError(t, os.WriteFile(o.Program, []byte("#!/bin/true"), 0o600))
	h.Installer = New(o, func(why string) { h.shut = append(h.shut, why) })
	return h
}

// installed returns a host where the room is installed, with a copy of lab.
func installed(t *testing.T) *host {
	t.Helper()
	h := newHost(t)
	h.write("10-net.conflist", lab)
	require.True(t, h.step(0).Installed)
	return h
}

func (h *host) step(after time.Duration) State {
	h.now = h.now.Add(after)
	h.Step(h.now)
	return h.State()
}

func (h *host) write(name, text string) {
	h.t.Helper()
	require.NoError(h.t, os.WriteFile(filepath.Join(h.o.ConfDir, name), []byte(text), 0o600))
}

func (h *host) ours() string { return filepath.Join(h.o.ConfDir, FileName) }

// text returns our configuration.
func (h *host) text() string {
	h.t.Helper()
	text, err := os.ReadFile(h.ours())
	require.NoError(h.t, err)
	return string(text)
}

func (h *host) program() string { return filepath.Join(h.o.BinDir, ProgramName) }

// journalctl prints the message and the error of an entry, and no other field.
func TestTheLogSaysWhyPodsDoNotWait(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	log, hook := logtest.NewNullLogger()
	h.o.Log = log
	logged := func() string {
		require.Len(t, hook.AllEntries(), 1)
		e := hook.LastEntry()
		hook.Reset()
		return fmt.Sprint(e.Message, ": ", e.Data[logrus.ErrorKey])
	}
	h.step(0)
	assert.Equal(t, "the waiting room is not installed: pods do not wait before their sandbox: there is no CNI configuration yet", logged())
	h.write("10-net.conflist", lab)
	h.step(time.Hour)
	assert.Equal(t, "the waiting room is installed, with a copy of 10-net.conflist: <nil>", logged())
	h.step(time.Hour)
	h.write("20-other.conflist", "{}")
	h.step(time.Hour)
	h.write("20-other.conflist", "{ }")
	h.step(20 * time.Second)
	assert.Equal(t, "no pod enters the waiting room for a while: "+whyShut, logged())
}

func TestTheFirstConfigurationIsCopied(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	assert.Equal(t, State{WhyNot: "there is no CNI configuration yet"}, h.step(0))
	h.write("20-other.conflist", "{}")
	h.write("10-net.conflist", lab)
	h.write("05-readme.txt", "x")
	assert.Equal(t, State{Installed: true, CopiedFrom: "10-net.conflist"}, h.step(time.Hour))
	text := h.text()
	assert.JSONEq(t, `{"cniVersion":"1.0.0","name":"net","extra":[1],"plugins":[
		{"type":"ptp","ipam":{"type":"host-local"}},
		{"type":"pacemaker-cni","socket":"/run/gate.sock","confDir":"`+h.o.ConfDir+`","timeoutMillis":200000,"settleMillis":10000}]}`, text)
	info, err := os.Stat(h.program())
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o755), info.Mode())
	untouched, err := os.ReadFile(filepath.Join(h.o.ConfDir, "10-net.conflist"))
	require.NoError(t, err)
	assert.True(t, bytes.Equal([]byte(lab), untouched), "the copy is equal to the byte: %s", untouched)
	before, err := os.Stat(h.ours())
	require.NoError(t, err)
	h.step(time.Hour)
	after, err := os.Stat(h.ours())
	require.NoError(t, err)
	assert.True(t, os.SameFile(before, after), "without a change, nothing is written")

	h.write("10-net.conflist", `{"cniVersion":"0.4.0","name":"net","plugins":[{"type":"bridge"}]}`)
	assert.True(t, h.step(time.Hour).Installed, "the copy follows the change")
	assert.Contains(t, h.text(), "bridge")

	require.NoError(t, os.Chmod(h.program(), 0o644))
	require.NoError(t, os.Rename(h.o.Program, h.o.Program+".away"))
	assert.Contains(t, h.step(time.Hour).WhyNot, "no such file")
	assert.NoFileExists(t, h.ours())
	require.ErrorContains(t, Runnable(h.o.BinDir), "cannot be executed")
	require.NoError(t, os.Rename(h.o.Program+".away", h.o.Program))
	assert.True(t, h.step(time.Hour).Installed, "the program is put back with its mode")
	require.NoError(t, Runnable(h.o.BinDir))

	require.NoError(t, os.Remove(filepath.Join(h.o.ConfDir, "10-net.conflist")))
	require.NoError(t, os.Remove(filepath.Join(h.o.ConfDir, "20-other.conflist")))
	assert.False(t, h.step(time.Hour).Installed, "the copied configuration is gone")
	assert.NoFileExists(t, h.ours())

	h.write("10-net.conflist", lab)
	h.step(time.Hour)
	require.NoError(t, Remove(h.o, 0))
	require.NoError(t, Remove(h.o, 0), "a missing file is no error")
	assert.NoFileExists(t, h.ours())
	assert.NoFileExists(t, h.program())
	require.NoError(t, os.RemoveAll(h.o.ConfDir))
	require.NoError(t, Remove(h.o, 0), "neither is a missing folder")
}

// libcni appends the plugins in the folder of the network's name to those of a list.
func TestNoPluginComesAfterOurs(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write("10-net.conflist", `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp"}]}`)
	require.True(t, h.step(0).Installed)
	require.NoError(t, os.Mkdir(filepath.Join(h.o.ConfDir, "net"), 0o700))
	assert.True(t, h.step(time.Hour).Installed, "the folder is empty")
	h.write("net/more.conf", "{}")
	assert.Contains(t, h.step(time.Hour).WhyNot, "more.conf is part of its network as well, and would come after pacemaker-cni")
	assert.NoFileExists(t, h.ours())
	h.write("10-net.conflist", `{"cniVersion":"1.0.0","name":"net","loadOnlyInlinedPlugins":true,"plugins":[{"type":"ptp"}]}`)
	assert.True(t, h.step(time.Hour).Installed)
	h.write("10-net.conflist", `{"cniVersion":"1.0.0","name":"other","plugins":[{"type":"ptp"}]}`)
	assert.True(t, h.step(time.Hour).Installed, "it is of another network")
}

// Two daemons with folders of their own may have been told to use one folder of CNI configurations.
func TestRemoveLeavesTheRoomOfAnotherDaemon(t *testing.T) {
	t.Parallel()
	h := installed(t)
	other := h.o
	other.Socket = "/run/other/gate.sock"
	require.ErrorContains(t, Remove(other, 0), "it is of the daemon at /run/gate.sock, and not of the one at /run/other/gate.sock")
	assert.FileExists(t, h.ours())
	assert.FileExists(t, h.program())
	require.NoError(t, Remove(h.o, 0))
	assert.NoFileExists(t, h.ours())
}

// A node where the runtime has no NRI gets no room: the daemon would answer no pod, and each would start 10 s late.
func TestNothingIsInstalledBeforeTheDaemonAnswers(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write("10-net.conflist", lab)
	answers := make(chan struct{})
	h.o.Answers = answers
	log, logged := logtest.NewNullLogger()
	h.o.Log = log
	for range 3 {
		assert.Equal(t, State{WhyNot: "the daemon does not answer pods yet"}, h.step(time.Hour))
		assert.NoFileExists(t, h.ours())
		assert.NoFileExists(t, h.program())
	}
	assert.Empty(t, logged.AllEntries(), "so it is at each start of a daemon")
	close(answers)
	assert.True(t, h.step(time.Hour).Installed)

	next := New(h.o, func(string) {})
	next.o.Answers = make(chan struct{})
	h.write("10-net.conflist", `{"cniVersion":"0.4.0","name":"net","plugins":[{"type":"bridge"}]}`)
	next.Step(h.now)
	assert.True(t, next.State().Installed, "what an earlier daemon has installed follows the original")
	assert.Contains(t, h.text(), "bridge")
}

func TestTheInstallerDoesNotFightOtherPrograms(t *testing.T) {
	t.Parallel()
	for name, other := range map[string]func(h *host){
		"removed": func(h *host) { require.NoError(h.t, os.Rename(h.ours(), h.ours()+".bak")) },
		"changed": func(h *host) { h.write(FileName, "{}") },
	} {
		h := installed(t)
		other(h)
		for range 3 {
			s := h.step(time.Hour)
			assert.False(t, s.Installed, name)
			assert.Contains(t, s.WhyNot, "another program or an administrator removed or changed", name)
		}
		text, err := os.ReadFile(h.ours())
		assert.Equal(t, name == "removed", err != nil, name)
		assert.True(t, name == "removed" || string(text) == "{}")
	}
}

// Istio puts its plugin behind ours.
func TestARestartedInstallerLeavesWhatAnotherProgramChanged(t *testing.T) {
	t.Parallel()
	for _, changed := range []string{
		`{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp"},{"type":"pacemaker-cni"},{"type":"istio-cni"}]}`, "{}", "",
	} {
		h := newHost(t)
		h.write("10-net.conflist", lab)
		h.write(FileName, changed)
		for range 2 {
			s := h.step(time.Hour)
			assert.False(t, s.Installed)
			assert.Contains(t, s.WhyNot, "another program or an administrator removed or changed")
			assert.Equal(t, changed, h.text())
		}
	}
	h := newHost(t)
	h.write("10-net.conflist", lab)
	h.write(FileName, `{"plugins":[{"type":"bridge"},{"type":"pacemaker-cni"}]}`)
	require.True(t, h.step(0).Installed, "an earlier daemon wrote it")
	assert.Contains(t, h.text(), "ptp")
}

func TestConfigurationsThatCannotBeCopied(t *testing.T) {
	t.Parallel()
	for why, text := range map[string]string{
		"cannot be copied":       "nothing",
		"no plugins":             `{"cniVersion":"1.0.0","name":"n","plugins":[]}`,
		"has no type":            `{"cniVersion":"1.0.0","name":"n","plugins":[{}]}`,
		"has no name":            `{"cniVersion":"1.0.0","plugins":[{"type":"x"}]}`,
		"older than 0.3.1":       `{"name":"n","plugins":[{"type":"x"}]}`,
		"names pacemaker-cni al": `{"cniVersion":"1.0.0","name":"n","plugins":[{"type":"x"},{"type":"pacemaker-cni"}]}`,
	} {
		h := installed(t)
		h.write("10-net.conflist", text)
		assert.Contains(t, h.step(time.Hour).WhyNot, why)
		assert.NoFileExists(t, h.ours(), "a copy of the earlier configuration must not hide the invalid one")
	}
	h := newHost(t)
	h.write("10-net.conf", `{"cniVersion":"0.3.1","name":"n","type":"x"}`)
	require.True(t, h.step(0).Installed)
	var list struct{ Plugins []json.RawMessage }
	text := h.text()
	require.NoError(t, json.Unmarshal([]byte(text), &list))
	assert.Len(t, list.Plugins, 2, "a single plugin is a chain of one")
}

func TestNothingIsWrittenThatTheRuntimeWouldNotUse(t *testing.T) {
	t.Parallel()
	h := installed(t)
	h.write("00-agent.conf", `{"cniVersion":"0.3.1","name":"n","type":"x"}`)
	assert.Equal(t, State{WhyNot: "00-agent.conf comes before 00-pod-pacemaker.conflist, so the runtime would not use that"}, h.step(time.Hour))
	assert.NoFileExists(t, h.ours())
}

// GKE has the plugins in /home/kubernetes/bin, and its configurations in the usual folder.
func TestNothingIsWrittenIfTheRuntimeHasItsPluginsElsewhere(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write("10-net.conflist", lab)
	require.NoError(t, os.Remove(filepath.Join(h.o.BinDir, "ptp")))
	assert.Contains(t, h.step(0).WhyNot, "its plugin ptp is not in "+h.o.BinDir+", so the runtime would not find pacemaker-cni there: set --cni-bin-dir")
	assert.NoFileExists(t, h.ours(), "no pod would start")
	assert.NoFileExists(t, h.program())
}

// multus does what Multus does with --multus-conf-file=auto: its configuration comes first. It calls the first of the
// others by its path (thick), or contains it (thin).
func (h *host) multus(thick bool) {
	h.t.Helper()
	entries, err := os.ReadDir(h.o.ConfDir)
	require.NoError(h.t, err)
	for _, e := range entries {
		if e.Name() == "00-multus.conf" {
			continue
		}
		text, err := os.ReadFile(filepath.Join(h.o.ConfDir, e.Name()))
		require.NoError(h.t, err)
		calls := `"delegates":[` + string(text) + `]`
		if thick {
			calls = `"clusterNetwork":"/host/etc/cni/net.d/` + e.Name() + `"`
		}
		h.write("00-multus.conf", `{"cniVersion":"1.0.0","name":"multus","type":"multus",`+calls+`}`)
		return
	}
	h.t.Fatal("no other configuration")
}

func TestTheCopyDoesNotCallItselfThroughMultus(t *testing.T) {
	t.Parallel()
	for _, thick := range []bool{false, true} {
		h := installed(t)
		before := h.text()
		for range 2 {
			h.multus(thick)
			assert.Equal(t, State{Installed: true, CopiedFrom: "10-net.conflist"}, h.step(time.Hour), "containerd calls Multus, and that calls the copy")
			assert.Equal(t, before, h.text())
		}

		h = newHost(t)
		h.write("10-net.conflist", lab)
		h.multus(thick)
		assert.Contains(t, h.step(0).WhyNot, "00-multus.conf comes before", "Multus was there first")
		assert.NoFileExists(t, h.ours(), "Multus would use it when it starts again")
	}
}

func TestFilesThatAnotherConfigurationNamesStay(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]func(*host) string{
		"removed": func(h *host) string { return Remove(h.o, 0).Error() },
		"no original": func(h *host) string {
			require.NoError(h.t, os.Remove(filepath.Join(h.o.ConfDir, "10-net.conflist")))
			return h.step(time.Hour).WhyNot
		},
		"an original that names it": func(h *host) string {
			h.write("10-net.conflist", strings.Replace(lab, "ptp", FileName, 1))
			require.NoError(h.t, os.Remove(filepath.Join(h.o.ConfDir, "00-multus.conf")))
			return h.step(time.Hour).WhyNot
		},
	} {
		h := installed(t)
		before := h.text()
		h.multus(true)

		assert.Contains(t, remove(h), " names 00-pod-pacemaker.conflist, which stays: make it use another", name)
		assert.FileExists(t, h.program(), name)
		after := h.text()
		assert.JSONEq(t, strings.Replace(before, h.o.Socket, "", 1), after, "%s: no pod waits", name)

		h.Installer = New(h.o, func(string) {})
		h.write("10-net.conflist", lab)
		require.True(t, h.step(time.Hour).Installed, "%s: the room is switched on again", name)
		assert.Equal(t, before, h.text(), name)
	}
}

func TestAProgramThatAnotherConfigurationNamesStays(t *testing.T) {
	t.Parallel()
	for _, thick := range []bool{false, true} {
		h := installed(t)
		h.multus(thick)
		if thick {
			require.NoError(t, os.Remove(h.ours()))
		}
		require.ErrorContains(t, Remove(h.o, 0), "00-multus.conf names ")
		assert.NoFileExists(t, h.ours())
		assert.FileExists(t, h.program())
		h.multus(thick) // it uses 10-net.conflist now
		require.NoError(t, Remove(h.o, 0))
		assert.NoFileExists(t, h.program())
	}
}

func TestAFileThatIsNoConfigurationStaysIfAnotherNamesIt(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write("00-multus.conf", FileName)
	for _, text := range []string{"", "{}", `{"plugins":[]}`} {
		h.write(FileName, text)
		require.ErrorContains(t, Remove(h.o, 0), "00-multus.conf names ")
		assert.FileExists(t, h.ours())
	}
}

func TestUnfinishedFilesOfTheRoomGoToo(t *testing.T) {
	t.Parallel()
	h := installed(t)
	unfinished := filepath.Join(h.o.ConfDir, "."+FileName+".123")
	leave := func() { require.NoError(t, os.WriteFile(unfinished, nil, 0o600)) }

	leave()
	require.NoError(t, os.Remove(filepath.Join(h.o.ConfDir, "10-net.conflist")))
	require.False(t, h.step(time.Hour).Installed)
	assert.NoFileExists(t, unfinished, "the installer removed its configuration")

	leave()
	require.NoError(t, os.WriteFile(filepath.Join(h.o.BinDir, "."+ProgramName+".123"), nil, 0o600))
	require.NoError(t, Remove(h.o, 0))
	for _, dir := range []string{h.o.ConfDir, h.o.BinDir} {
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		for _, e := range entries {
			assert.NotContains(t, e.Name(), "pacemaker")
		}
	}
}

func TestAChainThatHasBegunFindsTheProgram(t *testing.T) {
	t.Parallel()
	h := installed(t)
	synctest.Test(t, func(t *testing.T) {
		done := make(chan error)
		go func() { done <- Remove(h.o, time.Second) }()
		synctest.Wait()
		assert.NoFileExists(t, h.ours())
		assert.FileExists(t, h.program())
		require.NoError(t, <-done)
		assert.NoFileExists(t, h.program())
	})
}

func TestTheRoomIsShutWhileTheFolderChangesOften(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write("10-net.conflist", lab)
	h.step(0)
	h.step(2 * time.Second)
	h.write("other", "1")
	h.step(2 * time.Second)
	assert.Empty(t, h.shut, "one change does not shut the room")
	h.write("other", "22")
	h.step(2 * time.Second)
	assert.Empty(t, h.shut, "the changes of a burst count as one")
	h.write("other", "333")
	assert.Equal(t, whyShut, h.step(20*time.Second).WhyNot)
	assert.Equal(t, []string{whyShut}, h.shut)
	h.step(quietFor / 2)
	assert.Len(t, h.shut, 1)
	assert.Empty(t, h.step(quietFor).WhyNot)
	assert.Equal(t, []string{whyShut, ""}, h.shut)
	h.write("other", "4444")
	h.step(time.Hour)
	assert.Len(t, h.shut, 2, "rare changes do not shut the room")
	assert.Equal(t, 3, h.Changes())
}

// The runtime does not notice them.
func TestChangesInAFolderInTheFolderDoNotCount(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write("10-net.conflist", lab)
	require.NoError(t, os.Mkdir(filepath.Join(h.o.ConfDir, "multus.d"), 0o700))
	for i := range 3 {
		h.step(time.Hour)
		at := time.Unix(int64(i), 0)
		require.NoError(t, os.Chtimes(filepath.Join(h.o.ConfDir, "multus.d"), at, at))
	}
	assert.Zero(t, h.Changes())
	require.NoError(t, os.Remove(filepath.Join(h.o.ConfDir, "multus.d")))
	h.step(time.Hour)
	assert.Equal(t, 1, h.Changes())
}

func TestAFolderThatCannotBeReadHasChangedOnce(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write("10-net.conflist", lab)
	h.step(0)
	h.step(2 * time.Second)
	require.NoError(t, os.RemoveAll(h.o.ConfDir))
	for range 10 {
		h.step(time.Minute)
	}
	assert.Equal(t, 1, h.Changes())
	assert.Empty(t, h.shut)
}

// An administrator installs new files, and restarts the daemon then.
func TestANewProgramIsForTheNextDaemon(t *testing.T) {
	t.Parallel()
	h := installed(t)
	installed, err := os.ReadFile(h.program())
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(h.o.Program, []byte("#!/b"), 0o600)) // half of it
	assert.True(t, h.step(lookEvery).Installed)
	now, err := os.ReadFile(h.program())
	require.NoError(t, err)
	assert.Equal(t, installed, now)
	require.NoError(t, os.Remove(h.o.Program))
	assert.True(t, h.step(lookEvery).Installed)
	assert.FileExists(t, h.ours())
}

// istio-cni put itself behind our plugin. The runtime still calls that.
func TestTheProgramIsKeptInAChainThatAnotherProgramChanged(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	h.write("10-net.conflist", lab)
	h.write(FileName, `{"plugins": [{"type": "`+ProgramName+`"}, {"type": "istio-cni"}]}`)
	require.NoError(t, os.WriteFile(h.program(), []byte("#!/old"), 0o600))
	for range 2 {
		assert.Contains(t, h.step(lookEvery).WhyNot, "another program")
		program, err := os.ReadFile(h.program())
		require.NoError(t, err)
		assert.Equal(t, "#!/bin/true", string(program))
		require.NoError(t, os.Remove(h.program()))
	}
	require.NoError(t, os.Remove(h.o.Program))
	assert.Contains(t, h.step(lookEvery).WhyNot, "no such file")
}
