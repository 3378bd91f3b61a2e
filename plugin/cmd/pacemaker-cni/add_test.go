package main

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

func TestAddWaitsForTheDaemon(t *testing.T) {
	t.Parallel()
	b, path := gatetest.Serving(t)
	began := time.Now()
	p := call(t, room(t, path))
	w := b.Next(t)
	assert.True(t, w.Room)
	assert.False(t, w.Brief)
	assert.Equal(t, []string{"u1", "s1", "ns/p"}, []string{w.PodUID, w.ContainerID, w.Name})
	assert.WithinRange(t, w.Since, began.Truncate(time.Microsecond), time.Now())
	assert.WithinDuration(t, began.Add(time.Hour), w.Deadline, 30*time.Second)
	w.SendForecast(time.Now().Add(-time.Hour), 1, 0) // this counts only without a daemon
	w.Decide(gate.Verdict{Go: true, Reason: "Reserved"})
	assert.Empty(t, p.passes(t))
}

func TestAddFailsWithTheDaemonsReason(t *testing.T) {
	t.Parallel()
	b, path := gatetest.Serving(t)
	p := call(t, room(t, path))
	b.Next(t).Decide(gate.Verdict{Reason: "Other: words"})
	code, msg := p.fails(t)
	assert.Equal(t, codeTryAgain, code)
	assert.Equal(t, "pod-pacemaker: waiting to start: Other: words", msg)
}

func TestPodsThatNeverWait(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*ask){
		"an exempt namespace":    func(a *ask) { a.namespace = "kube-system" },
		"no pod":                 func(a *ask) { a.uid = "" },
		"no socket":              func(a *ask) { a.socket = "" },
		"a UID that is too long": func(a *ask) { a.uid = strings.Repeat("u", 200) },
		"a static pod":           func(a *ask) { a.uid = "d41d8cd98f00b204e9800998ecf8427e" },
	} {
		a := room(t, gatetest.Socket(t))
		change(&a)
		said := call(t, a).passes(t)
		assert.Equal(t, name == "a UID that is too long", said != "", said)
	}
}

// After any change in the folder, the waiting pods leave the room at once. These are the changes for which the
// runtime reads its configurations again.
func TestAChangeInTheFolderEmptiesTheRoom(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(t *testing.T, dir, file string){
		"a file added": func(t *testing.T, dir, _ string) { write600(t, filepath.Join(dir, "20-other"), "x") },
		"a file replaced": func(t *testing.T, dir, file string) {
			write600(t, filepath.Join(dir, ".x"), "{}")
			rename(t, dir, ".x", file)
		},
		"a file renamed":     func(t *testing.T, dir, file string) { rename(t, dir, filepath.Base(file), "11-net.conflist") },
		"a file removed":     func(t *testing.T, _, file string) { require.NoError(t, os.Remove(file)) },
		"a file written":     func(t *testing.T, _, file string) { write600(t, file, "[]") },
		"the folder removed": func(t *testing.T, dir, _ string) { require.NoError(t, os.RemoveAll(dir)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, path := gatetest.Serving(t)
			a := room(t, path)
			p := call(t, a)
			w := b.Next(t)
			leaveAt := time.Now().Add(time.Hour).Truncate(time.Millisecond)
			w.SendForecast(leaveAt, 3, 2*time.Second)
			require.Eventually(t, func() bool { return threads(p.Process.Pid) > 0 && sleeps(p.Process.Pid) }, time.Minute, time.Millisecond)
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

// A daemon that hangs keeps no pod in the room. The last turn that it sent counts for the pod's next process.
func TestAChangeEmptiesTheRoomOfADaemonThatHangs(t *testing.T) {
	t.Parallel()
	leaveAt := time.Now().Add(time.Hour)
	told := make(chan string, 8)
	path := gatetest.Listen(t, func(c net.Conn) {
		line := make([]byte, 1024)
		n, _ := c.Read(line)
		if len(told) == 0 {
			_, _ = io.WriteString(c, "turn "+itoa(int(leaveAt.UnixMicro()))+" 3 2000\n")
		}
		told <- string(line[:n])
		_, _ = io.Copy(io.Discard, c) // and the daemon sends nothing more
	})
	note := filepath.Join(filepath.Dir(path), wire.NoteFolder, "u1")
	var first string
	var since time.Time
	var forecast wire.Answer
	require.Eventually(t, func() bool {
		a := room(t, path)
		p := call(t, a)
		first = gatetest.Receive(t, told, "it asks")
		told <- first
		write600(t, filepath.Join(a.confDir, "20-other"), "{}")
		p.fails(t)
		<-told
		since, forecast = noteOf(path, "u1").take(time.Now())
		return forecast.LeaveAt.UnixMicro() == leaveAt.UnixMicro() // otherwise it saw the change before it read its turn
	}, time.Minute, time.Millisecond)
	assert.Equal(t, 2*time.Second, forecast.Pace)
	assert.Zero(t, forecast.Place, "the next process has a place of its own")
	assert.Contains(t, first, " since="+itoa(int(since.UnixMicro()))+" ")
	assert.NoFileExists(t, note, "take removes the note")
}

// Without a daemon, a process waits for some seconds. If the folder changes sooner each time, the pod starts all the same.
func TestChangesWithoutADaemonKeepNoPod(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t) // its folder does not exist, as after a reboot
	began := time.Now()
	a := room(t, path)
	p := call(t, a)
	require.Eventually(t, func() bool { return opens(p.Process.Pid, a.confDir) && sleeps(p.Process.Pid) }, time.Minute, time.Millisecond)
	write600(t, filepath.Join(a.confDir, "20-other"), "{}")
	_, msg := p.fails(t)
	assert.Contains(t, msg, "keeps its place")
	since, forecast := noteOf(path, "u1").take(time.Now())
	assert.WithinRange(t, since, began.Truncate(time.Microsecond), time.Now())
	assert.Equal(t, since.Add(daemonGrace).UnixMicro(), forecast.LeaveAt.UnixMicro(), "the next process leaves when this one would have")
	assert.Equal(t, lonelyPace, forecast.Pace)
}

// opens reports whether a process has this folder open.
func opens(pid int, dir string) bool {
	fds, _ := filepath.Glob(filepath.Join("/proc", itoa(pid), "fd", "*"))
	return slices.ContainsFunc(fds, func(fd string) bool {
		to, err := os.Readlink(fd)
		return err == nil && to == dir
	})
}

func TestWithoutADaemonTheLastTurnCounts(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	leaveAt := time.Now().Add(700 * time.Millisecond)
	noteOf(path, "u1").leave(noted(time.Now()), wire.Answer{Kind: wire.Forecast, LeaveAt: leaveAt, Pace: 100 * time.Millisecond})
	said := call(t, room(t, path)).passes(t)
	assert.False(t, time.Now().Before(leaveAt.Truncate(time.Millisecond)), "it left early")
	assert.Contains(t, said, "ns/p comes up unpaced: no daemon at "+path)
}

// A daemon that never comes back delays pods for a minute only.
func TestNoPodWaitsForADaemonThatIsGoneForGood(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
	noteOf(path, "u1").leave(noted(time.Now()), wire.Answer{Kind: wire.Forecast, LeaveAt: time.Now()})
	assert.Contains(t, call(t, room(t, path)).passes(t), "no daemon", "the first")
	mark := goneOf(path)
	first, err := os.Stat(mark.path)
	require.NoError(t, err, "it says since when no daemon decides")
	assert.False(t, mark.forGood(time.Now()))
	assert.True(t, mark.forGood(first.ModTime().Add(aloneMost+time.Second)))
	mark.mark()
	again, err := os.Stat(mark.path)
	require.NoError(t, err)
	assert.Equal(t, first.ModTime(), again.ModTime(), "later ones do not change it")

	long := time.Now().Add(-time.Hour)
	require.NoError(t, os.Chtimes(mark.path, long, long))
	began := time.Now()
	assert.Contains(t, call(t, room(t, path)).passes(t), "no daemon at ")
	assert.Less(t, time.Since(began), daemonGrace)
	noteOf(path, "u1").leave(noted(time.Now()), wire.Answer{Kind: wire.Forecast, LeaveAt: time.Now().Add(time.Hour), Pace: time.Minute})
	assert.Contains(t, call(t, room(t, path)).passes(t), "no daemon at ", "whatever the last daemon forecast")

	b := gatetest.NewBackend()
	gatetest.Serve(t, path, b)
	p := call(t, room(t, path))
	b.Next(t).Decide(gate.Verdict{Go: true, Reason: "Reserved"})
	assert.Empty(t, p.passes(t), "a daemon that is back decides")
}

func TestTheNextProcessOfAPodKeepsItsPlace(t *testing.T) {
	t.Parallel()
	b, path := gatetest.Serving(t)
	since := time.Now().Add(-time.Minute).Truncate(time.Microsecond)
	noteOf(path, "u1").leave(noted(since), wire.Answer{Kind: wire.Forecast, LeaveAt: time.Now().Add(time.Hour), Pace: time.Second})
	p := call(t, room(t, path))
	w := b.Next(t)
	assert.WithinDuration(t, since, w.Since, time.Millisecond, "the wall clock and the other clock do not run alike")
	w.Decide(gate.Verdict{Go: true})
	assert.Empty(t, p.passes(t))
}

// noted is the hello of a pod that has waited since this time.
func noted(since time.Time) wire.Hello {
	return wire.Hello{PodUID: "u1", ContainerID: "s1", Name: "ns/p", Since: since, Room: true}
}

func TestNotesThatAreOfNoUse(t *testing.T) {
	t.Parallel()
	path := gatetest.Socket(t)
	require.NoError(t, os.MkdirAll(filepath.Join(filepath.Dir(path), wire.NoteFolder), 0o700))
	n := noteOf(path, "u1")
	now := time.Now()
	assertNone := func(why string) {
		since, forecast := n.take(now)
		assert.Zero(t, since, why)
		assert.Zero(t, forecast, why)
	}
	assertNone("no note exists")
	old := wire.Answer{Kind: wire.Forecast, LeaveAt: now.Add(-noteLasts - time.Second)}
	n.leave(noted(now.Add(-time.Hour)), old)
	assertNone("too old")
	n.leave(noted(now.Add(time.Hour)), wire.Answer{Kind: wire.Forecast, LeaveAt: now.Add(time.Hour)})
	assertNone("from before the clock was set back")
	for _, text := range []string{
		"", "1 2", "1 2 x\n", "1 2 -3\n", "\x00\x01", "wait 1 pod=u1 container=s1 since=1\n", "turn 9000000000000000 0 100\n",
		"wait 1 pod=u1 container=s1 since=1\nalive\n", "wait 1 pod=u1 container=s1 since=1\nturn 9000000000000000 x\n",
	} {
		write600(t, n.path, text)
		assertNone(text)
	}
	n.leave(noted(now.Add(-time.Hour)), wire.Answer{Kind: wire.Forecast, LeaveAt: now, Pace: time.Second})
	since, forecast := n.take(now)
	assert.Equal(t, now.Add(-time.Hour).UnixMicro(), since.UnixMicro(), "this note is of use")
	assert.Equal(t, time.Second, forecast.Pace)
	assert.Empty(t, noteOf(path, "../x").path)
	noteOf("/proc/gate.sock", "u1").leave(noted(now), old) // nothing can be written in this folder
}

// The folder may change after the runtime took its lock. No pod may wait then, because the runtime already waits for
// this very ADD.
func TestNoPodWaitsAfterAnUnseenChange(t *testing.T) {
	t.Parallel()
	changed := func(path string) ask {
		a := room(t, path)
		write600(t, filepath.Join(a.confDir, "10-net.conflist"), "[]")
		return a
	}
	t.Run("the daemon admits the pod", func(t *testing.T) {
		t.Parallel()
		b, path := gatetest.Serving(t)
		p := inTime(t, func() plugin {
			p := call(t, changed(path))
			b.Next(t).Decide(gate.Verdict{Go: true})
			return p
		})
		assert.Empty(t, p.passes(t))
	})
	t.Run("the daemon makes the pod wait", func(t *testing.T) {
		t.Parallel()
		b, path := gatetest.Serving(t)
		p := inTime(t, func() plugin {
			p := call(t, changed(path))
			b.Next(t).SendForecast(time.Now().Add(time.Hour), 2, time.Second)
			return p
		})
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

// inTime calls the plugin, again if it takes longer than askMost. After that it no longer waits for the daemon's answer, and
// how it ends says nothing about the answer.
func inTime(t *testing.T, called func() plugin) (ended plugin) {
	t.Helper()
	for range 100 {
		began := time.Now()
		ended = called()
		gatetest.Receive(t, ended.Ended, "the plugin ends")
		if time.Since(began) < askMost {
			return ended
		}
	}
	require.Fail(t, "no plugin has ended in time")
	return ended
}

// The runtime reads the folder again for each event of a change. After the first time, the ADDs that began meanwhile run,
// and the second time it waits for these, and the node with it.
func TestNoPodBeginsToWaitSoonAfterAChange(t *testing.T) {
	t.Parallel()
	soonAfter := func(path string) ask {
		a := room(t, path) // its network namespace is a little younger than the last change
		a.settleMillis = 3600_000
		return a
	}
	b, path := gatetest.Serving(t)
	p := inTime(t, func() plugin {
		p := call(t, soonAfter(path))
		w := b.Next(t)
		assert.True(t, w.Brief, "the daemon knows that it cannot wait")
		w.SendForecast(time.Now().Add(time.Hour), 2, time.Second)
		return p
	})
	_, msg := p.fails(t)
	assert.Contains(t, msg, "the CNI configuration changed")
	p = inTime(t, func() plugin {
		p := call(t, soonAfter(path))
		b.Next(t).Decide(gate.Verdict{Go: true})
		return p
	})
	assert.Empty(t, p.passes(t), "the daemon admits the pod")

	silent := gatetest.Listen(t, func(c net.Conn) {
		_, _ = io.Copy(io.Discard, c) // until the plugin closes the connection
	})
	_, msg = call(t, soonAfter(silent)).fails(t)
	assert.Contains(t, msg, "the CNI configuration changed", "the daemon hangs")

	alone := gatetest.Socket(t)
	_, msg = call(t, soonAfter(alone)).fails(t)
	assert.Contains(t, msg, "the CNI configuration changed", "a daemon may come until kubelet tries again")
	_, forecast := noteOf(alone, "u1").take(time.Now())
	assert.WithinRange(t, forecast.LeaveAt, time.Now(), time.Now().Add(daemonGrace))
	noteOf(alone, "u1").leave(noted(time.Now()), wire.Answer{Kind: wire.Forecast, LeaveAt: time.Now()})
	assert.Contains(t, call(t, soonAfter(alone)).passes(t), "unpaced", "no daemon has come")
}

// After a reboot, the agent of the network has just written its file, and no ADD was under way.
func TestPodsMayWaitWhenTheRuntimeHasReadTheFolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	own := filepath.Join(dir, "cni-own")
	write600(t, own, "")
	begun := time.Unix(0, changeOf(t, own))
	at := begun.Add
	assert.True(t, readLongAgo(own, at(-2*time.Second), begun, begun))
	assert.False(t, readLongAgo(own, at(-readWithin/2), begun, begun), "it began right after the change")
	assert.False(t, readLongAgo(own, at(-2*time.Second), begun, at(2*addGrace)), "it may have waited for the lock")
	assert.False(t, readLongAgo("", at(-2*time.Second), begun, begun))
	assert.False(t, readLongAgo("/nowhere/own", at(-2*time.Second), begun, begun))

	later := at(time.Hour) // of this ADD, as if the file were that of an earlier one
	assert.True(t, readLongAgo(own, at(addMost+time.Second), later, later), "an ADD that was long over at the change")
	assert.False(t, readLongAgo(own, at(addMost-time.Second), later, later), "it may have been under way")
	assert.False(t, readLongAgo(own, at(-readWithin/2), later, later), "it began right after the change, and may hold the lock")
	require.NoError(t, os.Symlink("/nowhere", filepath.Join(dir, "cni-gone")))
	assert.False(t, readLongAgo(own, at(-2*time.Second), begun, begun), "one is being removed")
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
	assert.False(t, f.changedSince(changed.Add(-time.Hour), changed.Add(-time.Minute)), "the change is in the future")
	assert.False(t, f.changed())
}

// Multus and whereabouts keep their credentials in a folder there. The runtime does not notice changes in that.
func TestAChangeInAFolderInTheFolderDoesNotCount(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	inner := filepath.Join(dir, "multus.d")
	require.NoError(t, os.Mkdir(inner, 0o700))
	f, ok := openFolder(dir)
	require.True(t, ok)
	before := changeOf(t, inner)
	for i := 0; changeOf(t, inner) == before; i++ {
		write600(t, filepath.Join(inner, itoa(i)), "x")
	}
	assert.False(t, f.changed())
	again, ok := openFolder(dir)
	require.True(t, ok)
	assert.False(t, again.changedSince(time.Unix(0, changeOf(t, inner)), time.Now()))
	require.NoError(t, os.RemoveAll(inner))
	assert.True(t, f.changed(), "the runtime notices that")
}
