//go:build e2e

package e2e

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// chaosLimit is how many pods may start at a time, and chaosLetGo how many a daemon or a
// containerd may let go each time that it is killed: what is made until the daemon is
// connected again, nobody holds. These are the pods that kubelet makes or tries again in
// a few seconds, out of chaosPods.
const (
	chaosLimit = 3
	chaosLetGo = 10
)

// process is one container, as containerd tells of it: when it was made, when its process
// began, and when that ended, if it did.
type process struct {
	pod                   string
	made, began, finished time.Time
}

// follower reads what happens to the containers of a namespace while they come and go.
type follower struct {
	namespace string
	mu        sync.Mutex
	seen      map[string]process // by container
}

// follow follows the containers of a namespace until the test ends.
func follow(t *testing.T, namespace string) *follower {
	t.Helper()
	f := &follower{namespace: namespace, seen: map[string]process{}}
	ctx, cancel := context.WithCancel(context.Background())
	var following sync.WaitGroup
	following.Go(func() {
		for ctx.Err() == nil {
			f.read(ctx)
			after(ctx, 100*time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); following.Wait() })
	return f
}

// read notes what has changed. containerd is away at times: what it knows then, it still
// knows when it is back.
func (f *follower) read(ctx context.Context) {
	reply, err := node.CRI().ListContainers(ctx, &runtimeapi.ListContainersRequest{Filter: &runtimeapi.ContainerFilter{
		LabelSelector: map[string]string{"io.kubernetes.pod.namespace": f.namespace},
	}})
	if err != nil {
		return
	}
	for _, c := range reply.Containers {
		known := f.of(c.Id)
		began, ended := c.State != runtimeapi.ContainerState_CONTAINER_CREATED, c.State == runtimeapi.ContainerState_CONTAINER_EXITED
		if !began || (!known.began.IsZero() && (!ended || !known.finished.IsZero())) {
			continue
		}
		status, err := node.CRI().ContainerStatus(ctx, &runtimeapi.ContainerStatusRequest{ContainerId: c.Id})
		if err != nil {
			continue
		}
		f.note(c.Id, process{
			pod: c.Labels["io.kubernetes.pod.name"], made: time.Unix(0, status.Status.CreatedAt),
			began: momentOf(status.Status.StartedAt), finished: momentOf(status.Status.FinishedAt),
		})
	}
}

// momentOf is a time of CRI's, in which 0 is none.
func momentOf(nanos int64) time.Time {
	if nanos == 0 {
		return time.Time{}
	}
	return time.Unix(0, nanos)
}

func (f *follower) of(container string) process {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.seen[container]
}

func (f *follower) note(container string, r process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.seen[container] = r
}

// begun gives the containers whose processes began, in that order.
func (f *follower) begun() (all []process) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.seen {
		if !r.began.IsZero() {
			all = append(all, r)
		}
	}
	slices.SortFunc(all, func(a, b process) int { return a.began.Compare(b.began) })
	return all
}

// start is the time in which a container is between the start of its process and ready.
type start struct {
	process
	until  time.Time // ready, ended, or told to go
	outage int       // in which nobody could hold it; -1: it was held, or should have been
}

// starts gives the starts of all containers, but for those that kubelet still starts of
// a pod that was told to go.
func (c *chaos) starts() (all []start) {
	readyAt := kubeletReadies(c.t, c.namespace)
	for _, r := range c.follower.begun() {
		s := start{process: r, until: r.finished, outage: c.outageOf(r)}
		gone := c.removed[deploymentOf(r.pod)]
		if !gone.IsZero() && gone.Before(r.began) {
			continue
		}
		for _, end := range append(readyAt[r.pod], gone) {
			if end.After(r.began) && (s.until.IsZero() || end.Before(s.until)) {
				s.until = end
			}
		}
		all = append(all, s)
	}
	return all
}

// outageOf gives the outage in which nobody could hold a container; -1: there is none.
func (c *chaos) outageOf(r process) int {
	return slices.IndexFunc(c.outages, func(o outage) bool { return o.missed(r.made, r.began) })
}

// assertLimit checks that whenever a process began that the daemon could hold, fewer than
// the limit were starting, those that nobody held included; and that these were few.
func (c *chaos) assertLimit() {
	c.t.Helper()
	all, held, letGo := c.starts(), 0, make([]int, len(c.outages))
	for _, s := range all {
		if s.outage >= 0 {
			letGo[s.outage]++
			continue
		}
		held++
		beside := 0
		for _, other := range all {
			if other.began.Before(s.began) && (other.until.IsZero() || other.until.After(s.began)) {
				beside++
			}
		}
		assert.Less(c.t, beside, chaosLimit, "that were starting when %s began at %s", s.pod, s.began.Format("15:04:05.000"))
	}
	most := 0
	for i, n := range letGo {
		most = max(most, n)
		assert.LessOrEqual(c.t, n, chaosLetGo, "let go from %s to %s", c.outages[i].from.Format("15:04:05.0"), c.outages[i].to.Format("15:04:05.0"))
	}
	assert.Greater(c.t, held, len(all)/2, "starts that were held, of %d: this shows nothing", len(all))
	figure(c.t, "%d of %d starts within the limit of %d; in %d outages at most %d were let go", held, len(all), chaosLimit, len(letGo), most)
}
