package leases

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// strippingAPI is an API server of which an admission webhook takes the labels of all
// Leases.
type strippingAPI struct{ *fakeAPI }

func (s strippingAPI) Create(ctx context.Context, l *coordinationv1.Lease, o metav1.CreateOptions) (*coordinationv1.Lease, error) {
	l = l.DeepCopy()
	l.Labels = nil
	return s.fakeAPI.Create(ctx, l, o)
}

// What cannot be read says nothing of any slot: taken for a Lease of version 0, it would
// be said that the store has gone back, and all be listed anew, again and again.
func TestALeaseThatCannotBeReadIsNotTakenForSeen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := store{api: strippingAPI{newFakeAPI()}, holder: "a"}
		c := call{verb: takeSlot, slot: record{id: "id", n: 1, name: "pod-pacemaker-registry-id-1"}, key: registry, policy: "uid"}
		a := s.make(t.Context(), c)
		require.ErrorIs(t, a.err, errNoSlot)
		require.Nil(t, a.seen)

		c.verb = lookSlot
		a = s.make(t.Context(), c)
		require.ErrorIs(t, a.err, errNoSlot)
		require.ErrorIs(t, a.err, errConflict)
		require.Nil(t, a.seen)
	})
}
