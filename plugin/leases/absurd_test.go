package leases

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// A Lease says for how long it lasts, and when it was renewed. Whatever stands there, the slot is free again a minute
// after its last change, and the Lease is deleted within 21 minutes.
func TestALeaseWithAbsurdTimesIsNotHeldForEver(t *testing.T) {
	t.Parallel()
	holder := "stranger"
	for _, seconds := range []int32{math.MaxInt32, 30, 0, -1, math.MinInt32} {
		for _, renewed := range []time.Time{{}, time.Unix(0, 0), time.Now(), time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)} {
			name, at := fmt.Sprintf("%d s, renewed %s", seconds, renewed), metav1.NewMicroTime(renewed)
			r, err := readRecord(&coordinationv1.Lease{
				ObjectMeta: metav1.ObjectMeta{Name: "pod-pacemaker-p-0123-4", UID: "u", ResourceVersion: "7", Labels: map[string]string{SlotLabel: "0123"}},
				Spec:       coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, AcquireTime: &at, RenewTime: &at},
			})
			require.NoError(t, err)
			now := time.Unix(1000, 0)
			p := newPlanner("own", func() int { return 1 }, rand.New(rand.NewPCG(1, 2)))
			p.saw(now, r, false)
			s := p.slots.get(r.id, r.n)
			assert.LessOrEqual(t, s.freeAt().Sub(now), time.Minute, name)
			assert.GreaterOrEqual(t, s.freeAt().Sub(now), lasts, name)

			p.sweep(now, new(alarm))
			require.Empty(t, p.calls, name)
			p.sweep(now.Add(21*time.Minute), new(alarm))
			require.Len(t, p.calls, 1, name)
			assert.Equal(t, sweepSlot, p.calls[0].verb, name)
		}
	}
}
