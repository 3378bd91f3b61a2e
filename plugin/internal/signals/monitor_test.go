package signals

import (
	"errors"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// The lock of the monitor is a leaf: the log and the events are called without it.
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
	log, _ := logtest.NewNullLogger()
	log.AddHook(everyLine(free))
	m = New("/proc", throttle.New(time.Now(), throttle.Settings{}), log, func(string, string, string) { free() })
	m.settings.Signals[throttle.SignalLoad].Max = 4
	now := time.Now()
	for _, r := range []throttle.Reading{{Err: errors.New("gone")}, {To: now}} {
		m.Observe(now, throttle.Signals{throttle.SignalLoad: r})
	}
	assert.Equal(t, 4, calls)
}

// everyLine is a hook that calls a function for every line of a log.
type everyLine func()

func (everyLine) Levels() []logrus.Level { return logrus.AllLevels }

func (h everyLine) Fire(*logrus.Entry) error { h(); return nil }
