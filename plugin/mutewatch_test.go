package plugin

import (
	"testing"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

func TestWhileTheWatchIsMuteAStartEndsByItsSigns(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, tuned(func(r *tuning) {
		quickSigns(r)
		r.timing.MuteAfter, r.timing.MuteEvery = 0, 0
	}))
	p := n.strangePod("web")
	p.spec.Annotations = map[string]string{"kubernetes.io/config.source": "api"}
	p.becomesKnown()
	p.runs()
	p.startsNow("app")
	p.becomes(throttle.Starting, reasons.WithinLimits)
	p.stillStarting("kubelet has not reported the pod as ready")
	n.pods.hears(p.uid, time.Now().Add(-time.Hour))
	n.d.starts.Wake()
	p.becomes(throttle.Started, reasons.Inferred)
}
