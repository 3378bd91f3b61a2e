package plugin

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/turns"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// turn is the answer to a hook.
type turn struct {
	leaveAt  time.Time
	position int
}

func TestAHookGetsOnlyChanges(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := goodOptions()
		o.InCluster, o.ProcRoot, o.CgroupRoot, o.Log = false, "/nowhere", "/nowhere", discard()
		d := newDaemon(o, 1, crd.Documents{}, nil, defaultTuning())
		parsed, err := crd.Parse([]byte("apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: test}\n" + oneAtATime))
		require.NoError(t, err)
		d.configure(crd.FromFile(parsed.Config))
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 3)
		go func() { ended <- d.starts.Run(ctx) }()

		holder := d.limiter.Join(time.Now(), throttle.Request{UID: "holder"})
		holder.Wait(time.Now())
		var mu sync.Mutex
		var all [2][]turn // for the first and the second hook
		heard := func() [2][]turn {
			mu.Lock()
			defer mu.Unlock()
			return all
		}
		for i, uid := range []string{"first", "second"} {
			hello := gate.Hello{PodUID: uid, ContainerID: uid, Deadline: time.Now().Add(time.Hour)}
			go func() {
				_, err := d.waiting.Wait(ctx, hello, func(at time.Time, position int, _ time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					all[i] = append(all[i], turn{at, position})
				})
				ended <- err
			}()
			time.Sleep(5 * time.Millisecond)
			synctest.Wait()
		}
		for i, of := range heard() {
			require.Len(t, of, 1)
			assert.Equal(t, i+1, of[0].position, "counted from one")
			assert.WithinDuration(t, time.Now().Add(turns.RestartGrace+time.Duration(i+1)*15*time.Second), of[0].leaveAt, time.Second)
		}

		for range 100 {
			d.starts.Wake()
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
		}
		for _, of := range heard() {
			assert.Len(t, of, 1, "nothing changed in all these rounds")
		}

		time.Sleep(15 * time.Second) // the turn of the first should have come
		synctest.Wait()
		first, second := heard()[0], heard()[1]
		last := func(of []turn) time.Time { return of[len(of)-1].leaveAt }
		assert.True(t, last(first).After(time.Now()), "the turn is still to come")
		assert.True(t, last(second).After(last(first)))

		cancel()
		for range 3 {
			if err := <-ended; err != nil { // the result of one of the two waiting hooks
				assert.ErrorIs(t, err, context.Canceled)
			}
		}
	})
}
