package nri

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/containerd/nri/pkg/api"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile/wholefiletest"
)

// someEnds returns what a daemon knows of the ends when it begins with this file. gone: so is the last runtime.
func someEnds(path string, gone bool) *ends {
	log, _ := logtest.NewNullLogger()
	e := &ends{path: path, log: log}
	e.load(time.Now(), func(string) bool { return gone })
	return e
}

// Whoever is started again, the next registration waits: each loop is a daemon that ended together with the runtime.
func TestAfterEachEndOfTheRuntimeTheDaemonStaysAwayForLonger(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "state", "registration.json")
	synctest.Test(t, func(t *testing.T) {
		for _, want := range []time.Duration{10 * time.Minute, time.Hour, 6 * time.Hour, 6 * time.Hour} {
			someEnds(path, true).begin(time.Now(), "socket")
			for range 3 {
				e := someEnds(path, true)
				require.ErrorContains(t, e.recent(time.Now()), "the runtime ended")
				require.ErrorContains(t, e.recent(time.Now()), "remove "+path+" to register now")
				require.Error(t, e.recent(time.Now().Add(want-1)))
				require.NoError(t, e.recent(time.Now().Add(want)))
			}
			time.Sleep(want)
		}
		e := someEnds(path, true)
		e.begin(time.Now(), "socket")
		e.listed()
		assert.NoFileExists(t, path)
		require.NoError(t, someEnds(path, true).recent(time.Now()), "the runtime has listed its pods")
	})
}

func TestARegistrationThatTheRuntimeSurvivedIsNoEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registration.json")
	someEnds(path, true).begin(time.Now(), "socket")
	require.NoError(t, someEnds(path, false).recent(time.Now()), "the daemon alone was killed")
	assert.NoFileExists(t, path)

	someEnds(path, true).begin(time.Now(), "socket")
	e := someEnds(path, true)
	require.Error(t, e.recent(time.Now()))
	require.NoError(t, os.Remove(path))
	require.NoError(t, e.recent(time.Now()), "the administrator has removed the note")
}

// The daemon was killed with the node: whatever it did then, the runtime is gone.
func TestABootOfTheNodeDuringARegistrationIsNoEnd(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registration.json")
	log, _ := logtest.NewNullLogger()
	begin := func(boot string) *ends {
		e := &ends{path: path, boot: boot, log: log}
		e.load(time.Now(), func(string) bool { return true })
		return e
	}
	begin("one").begin(time.Now(), "socket")
	e := begin("two")
	require.NoError(t, e.recent(time.Now()))
	assert.NoFileExists(t, path)

	e.begin(time.Now(), "socket")
	require.Error(t, begin("two").recent(time.Now()), "in the same boot, only the runtime has ended")
	require.Error(t, begin("three").recent(time.Now()), "the end counts also after a boot")
}

// containerd waits for the daemon while it registers.
func TestARegistrationDoesNotWaitForTheDisk(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registration.json")
	require.NoError(t, wholefiletest.WithoutSync(func() error {
		someEnds(path, true).begin(time.Now(), "socket")
		return nil
	}))
	assert.FileExists(t, path)
}

func TestANoteWithFewerThanNoEndsKeepsNoDaemonAway(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registration.json")
	require.NoError(t, os.WriteFile(path, []byte(`{"ends": -1}`), 0o600))
	require.NoError(t, someEnds(path, true).recent(time.Now()))
}

// A stop that the daemon does not know of blocks the registration, and an administrator restarts the runtime.
func TestARuntimeThatIsRestartedDuringALongRegistrationIsNoEnd(t *testing.T) {
	t.Parallel()
	for lasted, ended := range map[time.Duration]bool{endsSoon - 1: true, endsSoon: false} {
		c, _ := aConnection()
		c.options.Dial = func(context.Context, string) (net.Conn, error) { return nil, syscall.ECONNREFUSED }
		c.ends.begin(time.Now(), "socket")
		assert.Equal(t, ended, c.settle(t.Context(), life{registered: true, lasted: lasted}))
		assert.Equal(t, ended, c.ends.recent(time.Now()) != nil)
	}
}

// The clock of a node may be wrong when it boots.
func TestAClockThatWasSetBackDoesNotMakeTheDaemonStayAwayForLonger(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "registration.json")
	someEnds(path, true).begin(time.Now().Add(365*24*time.Hour), "socket")
	e := someEnds(path, true)
	require.Error(t, e.recent(time.Now()))
	require.NoError(t, e.recent(time.Now().Add(endWaits[0])))
}

// A runtime that ends and one that closes the connection look the same on the connection.
func TestARuntimeThatEndsIsToldFromOneThatClosesTheConnection(t *testing.T) {
	t.Parallel()
	configures := func(conn net.Conn, note string) {
		assert.NoError(t, registers(t.Context(), conn, func(plugin api.PluginService) {
			assert.FileExists(t, note, "it is written before the daemon registers")
			_, err := plugin.Configure(t.Context(), &api.ConfigureRequest{RuntimeName: "containerd", RuntimeVersion: "2.4.2", RequestTimeout: 2000})
			assert.NoError(t, err)
		}))
	}
	for name, ends := range map[string]bool{"it ends": true, "it closes the connection": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			socket, file := aSocket(t), filepath.Join(t.TempDir(), "registration.json")
			listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket})
			require.NoError(t, err)
			listener.SetUnlinkOnClose(false) // a runtime that panics leaves its socket
			log, _ := logtest.NewNullLogger()
			c := New(Options{
				Socket: socket, Name: "pacemaker", Index: "05", Log: log, FirstPause: time.Hour, EndsFile: file,
				Handler: &heard{call: func() {}, reconnected: func() {}},
			})
			served := make(chan struct{})
			go func() {
				defer close(served)
				for first := true; ; first = false {
					conn, err := listener.Accept()
					if err != nil {
						return
					}
					if !first { // the check whether it still listens
						conn.Close()
						continue
					}
					if ends {
						listener.Close()
					}
					configures(conn, file)
				}
			}()
			ctx, cancel := context.WithCancel(t.Context())
			ran := make(chan error, 1)
			go func() { ran <- c.Run(ctx) }()
			if ends {
				require.Eventually(t, func() bool { return c.Delayed() == RuntimeEnded }, time.Minute, time.Millisecond)
				require.ErrorContains(t, c.Paces(), "1 times in a row")
				assert.FileExists(t, file)
			} else {
				require.Eventually(t, func() bool { return errors.Is(c.Paces(), errUnlisted) }, time.Minute, time.Millisecond)
				assert.NoFileExists(t, file)
			}
			cancel()
			require.NoError(t, <-ran)
			listener.Close()
			<-served
		})
	}
}
