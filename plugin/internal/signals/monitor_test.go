package signals

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cores"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/observe"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// The lock of the monitor is a leaf: events are reported without it.
func TestTheLockOfTheMonitorIsFreeWhileOthersAreCalled(t *testing.T) {
	t.Parallel()
	var m *Monitor
	calls := 0
	free := func() {
		calls++
		if assert.True(t, m.mu.TryLock(), "the lock is held") {
			m.mu.Unlock()
		}
	}
	m = New("/proc", "/sys/fs/cgroup", cores.Of(2), throttle.New(time.Now(), throttle.Settings{}), func(observe.Event) { free() })
	m.settings.Signals[throttle.SignalLoad].Max = 4
	now := time.Now()
	for _, r := range []throttle.Reading{{Err: errors.New("gone")}, {To: now}} {
		m.observe(now, throttle.Signals{throttle.SignalLoad: r})
	}
	assert.Equal(t, 2, calls)
}
