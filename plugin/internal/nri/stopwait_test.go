package nri

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// apiServer is what the daemon knows of pods from the API server.
type apiServer struct {
	unlisted bool            // no list of pods came yet
	away     bool            // it cannot be asked
	pods     map[string]bool // that it has, by UID
	asked    map[string]bool // which pods have a container, as Stopping was told last
	// stops says when the stop that takes longest ends; nil if no pod is being stopped.
	stops func(now time.Time) (end time.Time, is bool)
}

func (a *apiServer) Listed() bool          { return !a.unlisted }
func (a *apiServer) Healthy() bool         { return !a.away }
func (a *apiServer) Known(uid string) bool { return a.pods[uid] }

func (a *apiServer) Stopping(now time.Time, running map[string]bool) (pod string, end time.Time, is bool) {
	a.asked = running
	if a.stops == nil {
		return "", time.Time{}, false
	}
	end, is = a.stops(now)
	return "ns/slow", end, is
}

func TestTheWaitForTheListOfPodsIsShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, _ := aConnection()
		stops := func(now time.Time) (time.Time, bool) { return now.Add(time.Minute), true }
		c.options.Stops, c.listBy = &apiServer{unlisted: true, stops: stops}, time.Now().Add(listWithin)
		require.ErrorIs(t, c.checkTurn(time.Now()), errNotListed)
		require.ErrorIs(t, c.Paces(), errNotListed)
		time.Sleep(listWithin - time.Nanosecond)
		require.ErrorIs(t, c.checkTurn(time.Now()), errNotListed)
		assert.Empty(t, c.Delayed(), "without a list, no stopping container is known")
		time.Sleep(time.Nanosecond)
		require.NoError(t, c.checkTurn(time.Now()), "without an API server, nothing is known of stops")
	})
	standalone, _ := aConnection()
	require.NoError(t, standalone.checkTurn(time.Now()))
}

func TestWhileAContainerIsStoppedNoConnectionIsGivenUp(t *testing.T) {
	t.Parallel()
	for name, configured := range map[string]bool{"it answers too late": true, "it is not configured": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				const stop, timeout = time.Minute, 2 * time.Second
				c, _ := aConnection()
				end := time.Now().Add(stop)
				c.options.Stops = &apiServer{stops: func(now time.Time) (time.Time, bool) { return end, now.Before(end) }}
				number := c.begin()
				if configured {
					require.NoError(t, c.configured(number, "containerd", "2.4.2", Timeouts{Request: timeout}))
				}
				late := newLateAnswers(func() time.Duration { return timeout })
				begin, ctx := time.Now(), t.Context()
				go func() {
					for configured && time.Since(begin) < 2*stop {
						time.Sleep(5 * time.Second)
						late.took(time.Now(), timeout)
					}
				}()
				err := c.watch(ctx, &watchedConn{closed: make(chan struct{})}, late)
				require.ErrorIs(t, err, map[bool]error{true: errTooLate, false: errSilent}[configured])
				require.GreaterOrEqual(t, time.Since(begin), stop)
				require.LessOrEqual(t, time.Since(begin), stop+registrationLimit)
				time.Sleep(2 * stop) // all answers have come
			})
		})
	}
}

// putBundle makes the bundle of a container or a sandbox.
func putBundle(t *testing.T, c *Connection, id, kind, uid string) {
	t.Helper()
	text := `{"annotations":{"io.kubernetes.cri.sandbox-namespace":"ns","io.kubernetes.cri.sandbox-name":"` + id + `","io.kubernetes.cri.sandbox-uid":"` + uid + `","io.kubernetes.cri.container-type":"` + kind + `"}}`
	require.NoError(t, os.Mkdir(filepath.Join(c.listing.dir, id), 0o700))
	require.NoError(t, os.WriteFile(c.listing.config(id), []byte(text), 0o600))
}

// A pod was deleted with a grace period of years, then by force. The stop that blocks the node goes on, and nobody knows for
// how long.
func TestTheDaemonDoesNotRegisterWhileAContainerOfAPodRunsThatTheAPIServerNoLongerHas(t *testing.T) {
	t.Parallel()
	const uid, static, fresh = "2bec9a87-731a-4ad1-a246-61b7e58c8cbe", "0123456789abcdef0123456789abcdef", "96a3f4fb-8a5e-49a3-a4ac-b9b9aab6e1e0"
	c, _ := aConnection()
	c.listing.dir = t.TempDir()
	putBundle(t, c, "ended", "sandbox", uid)
	putBundle(t, c, "static", "container", static)
	putBundle(t, c, "runs", "container", uid)
	known := &apiServer{pods: map[string]bool{uid: true}}
	c.options.Stops = known
	require.NoError(t, c.checkTurn(time.Now()))

	known.away = true
	putBundle(t, c, "new", "container", fresh)
	require.NoError(t, c.checkTurn(time.Now()), "a pod that is made while the API server cannot be asked is not known, and well")
	known.away, known.pods = false, map[string]bool{fresh: true}
	now := time.Now()
	for range 3 {
		require.ErrorContains(t, c.checkTurn(now), "a container of pod ns/runs for as long as the pod's first grace period")
		now = now.Add(time.Hour)
	}
	assert.Equal(t, ContainerStops, c.Delayed())
	assert.NotContains(t, c.Paces().Error(), "ns/", "every process of the node may read this")
	known.away = true
	require.ErrorContains(t, c.checkTurn(now), "a container of pod ns/runs", "it was gone before the API server was away")

	require.NoError(t, os.RemoveAll(filepath.Join(c.listing.dir, "runs")))
	require.NoError(t, c.checkTurn(now), "a sandbox without a container is not being stopped")
}

func TestOnlyAPodWithAContainerIsBeingStopped(t *testing.T) {
	t.Parallel()
	c, _ := aConnection()
	stops := &apiServer{}
	c.options.Stops = stops
	require.NoError(t, c.checkTurn(time.Now()))
	assert.Nil(t, stops.asked, "without a folder of bundles, kubelet's report counts")

	c.listing.dir = t.TempDir()
	putBundle(t, c, "sandbox", "sandbox", "ended")
	putBundle(t, c, "container", "container", "runs")
	require.NoError(t, c.checkTurn(time.Now()))
	assert.Equal(t, map[string]bool{"runs": true}, stops.asked)

	require.NoError(t, os.Mkdir(filepath.Join(c.listing.dir, "gone"), 0o700))
	require.NoError(t, c.checkTurn(time.Now()))
	assert.Equal(t, map[string]bool{"runs": true}, stops.asked, "a bundle that is being removed")

	putBundle(t, c, "old", "container", "")
	require.NoError(t, c.checkTurn(time.Now()))
	assert.Nil(t, stops.asked, "one of an older containerd may be of any pod")
	require.NoError(t, os.RemoveAll(filepath.Join(c.listing.dir, "old")))

	putBundle(t, c, "broken", "container", `"`)
	require.NoError(t, c.checkTurn(time.Now()))
	assert.Nil(t, stops.asked, "so may one that cannot be read")
}

// Also after a connection that ended, the daemon does not register during a stop. No runtime listens here, and each attempt
// that is more than remindEvery after another is logged.
func TestNoAttemptToRegisterIsMadeWhileAContainerIsStopped(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, logged := aConnection()
		var stops atomic.Bool
		c.options.Stops = &apiServer{stops: func(now time.Time) (time.Time, bool) { return now.Add(time.Minute), stops.Load() }}
		c.options.Socket = "/nowhere/nri.sock"
		said := func(text string) (count int) {
			for _, e := range logged.AllEntries() {
				if strings.Contains(e.Message, text) {
					count++
					if strings.Contains(e.Message, "ns/slow") {
						assert.Equal(t, []any{"ns", "slow"}, []any{e.Data["pod_namespace"], e.Data["pod_name"]})
					}
				}
			}
			return count
		}
		const attempt, waits, over = "no connection to the runtime", "is stopping a container of pod ns/slow", "nothing keeps the daemon from registering any more (first: ContainerStops)"
		passes := func(d time.Duration) {
			time.Sleep(d)
			synctest.Wait()
		}
		stops.Store(true)
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- c.Run(ctx) }()
		for stop := 1; stop <= 2; stop++ {
			passes(time.Hour)
			assert.Equal(t, stop-1, said(attempt))
			assert.Equal(t, stop, said(waits), "it is logged once for each stop")
			require.ErrorContains(t, c.State().Err, waits)
			require.ErrorContains(t, c.Paces(), "is stopping a container of a pod")
			assert.Equal(t, ContainerStops, c.Delayed())
			stops.Store(false)
			passes(time.Second)
			assert.Equal(t, stop, said(attempt))
			assert.Equal(t, stop, said(over))
			require.ErrorContains(t, c.Paces(), "does containerd run")
			assert.Empty(t, c.Delayed())
			stops.Store(true)
		}
		cancel()
		require.NoError(t, <-ended)
	})
}

// Stops that follow one another do not keep the daemon away for ever. It registers after a minute, at the first moment at
// which all stops end soon. A stop that takes long keeps it away: to register would block the node for as long.
func TestTheWaitForStopsIsBoundedByWhatTheyCost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stopTakes, want time.Duration
	}{
		"each stop is short": {heldMost, stopsMost},
		"one stop is long":   {2 * time.Hour, 2*time.Hour - heldMost},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				conn, logged := aConnection()
				h := &heard{}
				conn.handler = h
				began := time.Now()
				conn.options.Stops = &apiServer{stops: func(now time.Time) (time.Time, bool) { // each begins at the end of the one before
					return now.Add(c.stopTakes - now.Sub(began)%c.stopTakes), true
				}}
				conn.awaitTurn(t.Context())
				assert.InDelta(t, c.want.Seconds(), time.Since(began).Seconds(), 1)
				assert.Equal(t, 1, h.duringStop)
				assert.Contains(t, logged.AllEntries()[len(logged.AllEntries())-2].Message, "all starts and stops of the node wait for its end")
			})
		})
	}
}
