package adaptive_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/throttle/adaptive"
)

func TestBeginsWithOneStartPerCoreWithinItsBounds(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 8, adaptive.New(adaptive.Settings{Cores: 8}).Limit())
	assert.Equal(t, 3, adaptive.New(adaptive.Settings{Cores: 8, Max: 3}).Limit())
	assert.Equal(t, 9, adaptive.New(adaptive.Settings{Cores: 8, Min: 9, Max: 3}).Limit())
	assert.Equal(t, 1, adaptive.New(adaptive.Settings{}).Limit())
}

func TestNeverBelowMinHoweverBusyTheNodeIs(t *testing.T) {
	t.Parallel()
	c := adaptive.New(adaptive.Settings{Cores: 8, Min: 2})
	for i := range 1000 {
		c.Observe(adaptive.Sample{
			At: time.Unix(0, 0).Add(time.Duration(i) * 250 * time.Millisecond), Window: 2 * time.Second,
			CPU: 100, CPUPressure: 100, IOPressure: 100, CPUKnown: true, CPUPressureKnown: true, IOPressureKnown: true,
			Starting: c.Limit(), Waiting: 10,
		})
		assert.GreaterOrEqual(t, c.Limit(), 2)
	}
	assert.Equal(t, 2, c.Limit(), c.Why())
}
