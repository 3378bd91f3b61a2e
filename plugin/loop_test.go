package plugin

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

func TestStartsAreFollowedThoughTheirEventsWereLost(t *testing.T) {
	t.Parallel()
	p := newPacer(Options{Log: discard()}, nil, newMetrics())
	now := time.Now()
	start := func(uid string) *throttle.Ticket {
		ticket := p.limiter.Join(now, throttle.Request{UID: uid, Name: "default/" + uid})
		ticket.StartExempt(now)
		return ticket
	}
	ends := start("ends")
	p.publish()
	require.Equal(t, []string{"ends"}, p.startingUIDs())

	ends.End(now, throttle.Ready)
	start("lost")
	for range 5_000 { // each is three events
		start("other").End(now, throttle.Ready)
	}
	p.publish()
	require.Equal(t, []string{"lost"}, p.startingUIDs())
}

func TestThePacerLivesWhileItGoesRound(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	ctx, cancel := context.WithTimeout(n.ctx, patience)
	defer cancel()
	require.NoError(t, n.p.Alive(ctx))
	n.stopDaemon()
	soon, cancel := context.WithTimeout(n.ctx, 50*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, n.p.Alive(soon), errStuck)
}
