package preflight

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/rundir"
)

// hasty is a daemon whose runtime waits for its answers for too short a time.
type hasty struct{}

func (hasty) Status() admin.Status {
	return admin.Status{About: admin.About{Runtime: admin.Runtime{TimeoutWarning: "the runtime is hasty: set another time-out"}}}
}
func (hasty) Costs() admin.Costs          { return admin.Costs{} }
func (hasty) Alive(context.Context) error { return nil }
func (hasty) Ready() error                { return nil }

// Only the daemon knows the time-outs of its runtime.
func TestTimeoutsThatTheDaemonWarnsOf(t *testing.T) {
	t.Parallel()
	_, o := healthy(t)
	for _, f := range run(t, o).Findings {
		assert.NotEqual(t, "timeouts", f.Check, "no daemon runs")
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- admin.ServeAdmin(ctx, rundir.Serve, o.AdminPath(), hasty{}, nil) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool {
		_, err := admin.NewClient(o.AdminPath()).Status(t.Context())
		return err == nil
	}, time.Minute, 5*time.Millisecond)
	assert.Equal(t, Finding{Check: "timeouts", Level: Warning, Says: "the runtime is hasty", Do: "set another time-out"}, level(t, run(t, o), "timeouts"))
}
