package pods

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// The runtime reports times of the wall clock, which may be set afterwards. The book keeps these times on the
// daemon's clock.
func TestTheTimesOfContainersThatExistAreOnTheDaemonsClock(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for told, want := range map[int64]time.Time{
		0:                                now,
		now.Add(-time.Minute).UnixNano(): now.Add(-time.Minute),
		now.Add(time.Hour).UnixNano():    now, // the clock was set back since
	} {
		r := newPodState(&api.PodSandbox{Uid: "u"})
		r.adopt(&api.Container{Id: "c1", Name: "app", State: api.ContainerState_CONTAINER_RUNNING, StartedAt: told}, now)
		r.adopt(&api.Container{Id: "c2", Name: "init", State: api.ContainerState_CONTAINER_STOPPED, FinishedAt: told}, now)
		require.True(t, r.containers["c1"].running)
		for _, at := range []time.Time{r.containers["c1"].since, r.exits["init"].last} {
			assert.Contains(t, at.String(), " m=")
			assert.WithinDuration(t, want, at, 0)
		}
	}
}
