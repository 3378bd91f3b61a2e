package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
)

func TestAddWaitsForTheDaemon(t *testing.T) {
	t.Parallel()
	b, path := gatetest.NewBackend(), gatetest.Socket(t)
	gatetest.Serve(t, path, b)
	began := time.Now()
	p := call(t, room(t, path))
	w := b.Next(t)
	assert.True(t, w.Room)
	assert.Equal(t, []string{"u1", "s1", "ns/p"}, []string{w.PodUID, w.ContainerID, w.Name})
	assert.WithinRange(t, w.Since, began.Truncate(time.Microsecond), time.Now())
	assert.WithinDuration(t, began.Add(time.Hour), w.Deadline, 30*time.Second)
	w.SendTurn(time.Now().Add(-time.Hour), 1, 0) // of no meaning while there is a daemon
	w.Decide(gate.Verdict{Go: true, Reason: "Reserved"})
	assert.Empty(t, p.passes(t))
}

func TestAddFailsByTheDaemonsWord(t *testing.T) {
	t.Parallel()
	b, path := gatetest.NewBackend(), gatetest.Socket(t)
	gatetest.Serve(t, path, b)
	p := call(t, room(t, path))
	b.Next(t).Decide(gate.Verdict{Reason: "Other: words"})
	code, msg := p.fails(t)
	assert.Equal(t, codeTryAgain, code)
	assert.Equal(t, "pod-pacemaker: waiting to start: Other: words", msg)
}

func TestWhoNeverWaits(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ask){
		"an exempt namespace":       func(a *ask) { a.exempt = []string{"other", "ns"} },
		"no pod":                    func(a *ask) { a.uid = "" },
		"no socket":                 func(a *ask) { a.socket = "" },
		"a pod that cannot be told": func(a *ask) { a.uid = strings.Repeat("u", 200) },
	} {
		a := room(t, gatetest.Socket(t))
		change(&a)
		said := call(t, a).passes(t)
		assert.Equal(t, name == "a pod that cannot be told", said != "", said)
	}
}

// Whatever happens in the folder, who waits leaves at once: by a change that the runtime
// reads its configurations anew for.
func TestAChangeInTheFolderEmptiesTheRoom(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir, file string){
		"a file more": func(t *testing.T, dir, _ string) { write600(t, filepath.Join(dir, "20-other"), "x") },
		"a file replaced": func(t *testing.T, dir, file string) {
			write600(t, filepath.Join(dir, ".x"), "{}")
			rename(t, dir, ".x", file)
		},
		"a file renamed":  func(t *testing.T, dir, file string) { rename(t, dir, filepath.Base(file), "11-net.conflist") },
		"a file less":     func(t *testing.T, _, file string) { require.NoError(t, os.Remove(file)) },
		"a file written":  func(t *testing.T, _, file string) { write600(t, file, "[]") },
		"the folder gone": func(t *testing.T, dir, _ string) { require.NoError(t, os.RemoveAll(dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, path := gatetest.NewBackend(), gatetest.Socket(t)
			gatetest.Serve(t, path, b)
			a := room(t, path)
			p := call(t, a)
			w := b.Next(t)
			leaveAt := time.Now().Add(time.Hour).Truncate(time.Millisecond)
			w.SendTurn(leaveAt, 3, 2*time.Second)
			require.Eventually(t, func() bool { return threads(p.Process.Pid) > 0 && sleeps(p.Process.Pid) }, 20*time.Second, time.Millisecond)
			change(t, a.confDir, filepath.Join(a.confDir, "10-net.conflist"))
			code, msg := p.fails(t)
			assert.Equal(t, codeTryAgain, code)
			assert.Contains(t, msg, "keeps its place")
			w.AwaitEnd(t)
		})
	}
}

// threads is how many threads a process has; 0: it has ended.
func threads(pid int) int {
	names, err := filepath.Glob(filepath.Join("/proc", itoa(pid), "task", "*"))
	if err != nil {
		return 0
	}
	return len(names)
}

// sleeps reports whether a process is asleep in a poll of files.
func sleeps(pid int) bool {
	wchan, err := os.ReadFile(filepath.Join("/proc", itoa(pid), "stat"))
	return err == nil && strings.Contains(string(wchan), ") S ")
}

func write600(t *testing.T, path, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
}

func rename(t *testing.T, dir, from, to string) {
	t.Helper()
	if !filepath.IsAbs(to) {
		to = filepath.Join(dir, to)
	}
	require.NoError(t, os.Rename(filepath.Join(dir, from), to))
}

// A daemon that hangs keeps nobody in the room, and what it told last holds for the next
// process of the pod.
func TestAChangeEmptiesTheRoomOfADaemonThatHangs(t *testing.T) {
	t.Parallel()
	leaveAt := time.Now().Add(time.Hour)
	told := make(chan string, 8)
	path := gatetest.Listen(t, func(c net.Conn) {
		line := make([]byte, 1024)
		n, _ := c.Read(line)
		if len(told) == 0 {
			_, _ = io.WriteString(c, "turn "+itoa(int(leaveAt.UnixMilli()))+" 3 2000\n")
		}
		told <- string(line[:n])
		_, _ = io.Copy(io.Discard, c) // and no word more
	})
	note := filepath.Join(filepath.Dir(path), noteFolder, "u1")
	var first string
	require.Eventually(t, func() bool {
		a := room(t, path)
		p := call(t, a)
		first = gatetest.Receive(t, told, "it asks")
		told <- first
		write600(t, filepath.Join(a.confDir, "20-other"), "{}")
		p.fails(t)
		<-told
		_, err := os.Stat(note)
		return err == nil // else it saw the change before it had read its turn, and there is nothing to keep
	}, time.Minute, time.Millisecond)
	n := noteOf(path, "u1").take(time.Now())
	assert.Equal(t, leaveAt.UnixMilli(), n.leaveAt.UnixMilli())
	assert.Equal(t, 2*time.Second, n.pace)
	assert.Contains(t, first, " since="+itoa(int(n.since.UnixMicro()))+" ")
	assert.NoFileExists(t, note, "who takes it removes it")
}

func TestWithoutADaemonTheLastWordHolds(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	leaveAt := time.Now().Add(700 * time.Millisecond)
	noteOf(path, "u1").leave(turn{leaveAt: leaveAt, pace: 100 * time.Millisecond, since: time.Now()})
	said := call(t, room(t, path)).passes(t)
	assert.False(t, time.Now().Before(leaveAt.Truncate(time.Millisecond)), "it left early")
	assert.Contains(t, said, "ns/p comes up unpaced: no daemon at "+path)
}

func TestNotesThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	require.NoError(t, os.MkdirAll(filepath.Join(filepath.Dir(path), noteFolder), 0o700))
	n := noteOf(path, "u1")
	now := time.Now()
	assert.Zero(t, n.take(now), "there is none")
	old := turn{leaveAt: now.Add(-noteLasts - time.Second), since: now.Add(-time.Hour)}
	n.leave(old)
	assert.Zero(t, n.take(now), "too old")
	for _, text := range []string{"", "1 2", "1 2 x\n", "1 2 -3\n", "\x00\x01"} {
		write600(t, n.path, text)
		assert.Zero(t, n.take(now), "%q", text)
	}
	assert.Empty(t, noteOf(path, "../x").path)
	noteOf("/proc/gate.sock", "u1").leave(old) // nothing can be written there
}

// Where the folder changed after the runtime took its lock, nobody may wait: the runtime
// waits for this very ADD already.
func TestNobodyWaitsAfterAChangeThatNobodySaw(t *testing.T) {
	t.Parallel()
	changed := func(path string) ask {
		a := room(t, path)
		write600(t, filepath.Join(a.confDir, "10-net.conflist"), "[]")
		return a
	}
	t.Run("the daemon lets it go", func(t *testing.T) {
		t.Parallel()
		b, path := gatetest.NewBackend(), gatetest.Socket(t)
		gatetest.Serve(t, path, b)
		p := call(t, changed(path))
		b.Next(t).Decide(gate.Verdict{Go: true})
		assert.Empty(t, p.passes(t))
	})
	t.Run("the daemon makes it wait", func(t *testing.T) {
		t.Parallel()
		b, path := gatetest.NewBackend(), gatetest.Socket(t)
		gatetest.Serve(t, path, b)
		p := call(t, changed(path))
		b.Next(t).SendTurn(time.Now().Add(time.Hour), 2, time.Second)
		_, msg := p.fails(t)
		assert.Contains(t, msg, "the CNI configuration changed")
	})
	t.Run("the daemon hangs", func(t *testing.T) {
		t.Parallel()
		path := gatetest.Listen(t, func(c net.Conn) { _, _ = io.Copy(io.Discard, c) })
		assert.Contains(t, call(t, changed(path)).passes(t), "unpaced")
	})
	t.Run("no daemon", func(t *testing.T) {
		t.Parallel()
		assert.Contains(t, call(t, changed(gatetest.Socket(t))).passes(t), "unpaced")
	})
	t.Run("no folder", func(t *testing.T) {
		t.Parallel()
		a := room(t, gatetest.Socket(t))
		a.confDir = "/nowhere"
		assert.Contains(t, call(t, a).passes(t), "unpaced")
	})
}

func TestBegunIsNeverAfterTheAddBegan(t *testing.T) {
	t.Parallel()
	now := time.Now()
	assert.Equal(t, now.Add(-addGrace), begun("", now))
	assert.Equal(t, now.Add(-addGrace), begun("/nowhere", now))
	path := filepath.Join(t.TempDir(), "netns")
	write600(t, path, "")
	assert.Equal(t, changeOf(t, path), begun(path, now.Add(time.Hour)).UnixNano())
	assert.Equal(t, now.Add(-time.Hour-addGrace), begun(path, now.Add(-time.Hour)), "the clock was set back")
}

func TestFolderOfAClockThatWasSetBack(t *testing.T) {
	t.Parallel()
	f, ok := openFolder(t.TempDir())
	require.True(t, ok)
	changed := time.Unix(0, f.newest)
	assert.True(t, f.changedSince(changed, changed))
	assert.False(t, f.changedSince(changed.Add(1), changed.Add(1)))
	assert.False(t, f.changedSince(changed.Add(-time.Hour), changed.Add(-time.Minute)), "it is yet to come")
	assert.False(t, f.changed())
}
