package report

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// hearing is a summary, and the PacemakerNodes that it knows.
type hearing struct {
	t     *testing.T
	s     *Summary
	store cache.Store
}

func newHearing(t *testing.T) *hearing {
	return &hearing{t: t, s: NewSummary(SummaryOptions{}), store: cache.NewStore(cache.MetaNamespaceKeyFunc)}
}

func (h *hearing) writes(name string, at time.Time) {
	h.t.Helper()
	written := metav1.NewTime(at)
	require.NoError(h.t, h.store.Add(&v1alpha1.PacemakerNode{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Status: v1alpha1.PacemakerNodeStatus{NodeName: name, Written: &written},
	}))
}

func (h *hearing) requireThere(now time.Time, names ...string) {
	h.t.Helper()
	there := []string{}
	for _, n := range h.s.nodes(now, h.store) {
		there = append(there, n.NodeName)
	}
	require.ElementsMatch(h.t, names, there)
}

func TestTheSilentAreGone(t *testing.T) {
	t.Parallel()
	h := newHearing(t)
	h.writes("silent", noon.Add(-goneAfter-time.Second))
	h.writes("late", noon.Add(-goneAfter))
	require.NoError(t, h.store.Add(&v1alpha1.PacemakerNode{ObjectMeta: metav1.ObjectMeta{Name: "new"}}))
	h.requireThere(noon, "late")
	h.requireThere(noon.Add(time.Second))
	h.writes("silent", noon.Add(time.Second))
	h.requireThere(noon.Add(2*time.Second), "silent")
	h.requireThere(noon.Add(3*time.Second + goneAfter))

	require.NoError(t, h.store.Replace(nil, ""))
	h.requireThere(noon)
	require.Empty(t, h.s.heard)
}

// A daemon whose clock is an hour ahead, elected, would say that no config is in force
// anywhere, and thereby have all others write as in a small cluster.
func TestClocksMayDiffer(t *testing.T) {
	t.Parallel()
	h := newHearing(t)
	for now := noon; now.Before(noon.Add(24 * time.Hour)); now = now.Add(heartbeat) {
		h.writes("behind", now.Add(-time.Hour))
		h.writes("ahead", now.Add(time.Hour))
		if now.Equal(noon) {
			h.requireThere(now, "ahead")
			continue
		}
		h.requireThere(now, "behind", "ahead")
	}
	end := noon.Add(24*time.Hour - heartbeat)
	h.requireThere(end.Add(goneAfter), "behind", "ahead")
	h.requireThere(end.Add(goneAfter + time.Second))
}
