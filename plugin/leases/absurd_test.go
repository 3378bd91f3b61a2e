package leases

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Lease states how long it lasts, and when it was renewed. For any values, the slot is free again 30 s after
// the last change of the Lease. The Lease is deleted ten minutes after it.
func TestALeaseWithAbsurdTimesIsNotHeldForEver(t *testing.T) {
	t.Parallel()
	holder := "stranger"
	for _, seconds := range []int32{math.MaxInt32, 30, 0, -1, math.MinInt32} {
		for _, renewed := range []time.Time{{}, time.Unix(0, 0), time.Now(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
			name, at := fmt.Sprintf("%d s, renewed %s", seconds, renewed), metav1.NewMicroTime(renewed)
			now := time.Unix(1000, 0)
			s, _, n := readSlot(&coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: "pod-pacemaker-p-0123-4", UID: "u", ResourceVersion: "7", Labels: map[string]string{SlotLabel: "0123"}},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &at, RenewTime: &at},
			}, now)
			require.Equal(t, 4, n, name)
			assert.False(t, s.free(now.Add(leaseDuration-time.Second)), name)
			assert.True(t, s.free(now.Add(leaseDuration)), name)

			c := &Claimer{slots: map[string]map[int]slot{"0123": {n: s}}}
			require.Empty(t, c.sweep(now.Add(sweepAfter-time.Second)), name)
			calls := c.sweep(now.Add(sweepAfter))
			require.Len(t, calls, 1, name)
			assert.Equal(t, sweepSlot, calls[0].verb, name)
		}
	}
}
