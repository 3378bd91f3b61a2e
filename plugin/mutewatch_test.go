package plugin

import (
	"testing"
	"time"

	"github.com/containerd/nri/pkg/api"
	"github.com/stretchr/testify/assert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/podwatch"
	"github.com/pod-pacemaker/pod-pacemaker/throttle"
)

// runningSince has a pod run, by the word of the runtime.
func (p *pacer) runningSince(uid, source string, since time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	r := p.recordOfLocked(&api.PodSandbox{Id: uid, Uid: uid, Name: uid, Annotations: map[string]string{annotationSource: source}})
	r.started(&api.Container{Id: uid, Name: "app"}, since)
}

func TestAWatchThatToldNothingOfARunningContainerIsMute(t *testing.T) {
	t.Parallel()
	pods := &knownPods{pods: map[string]podwatch.Pod{}}
	p := newPacer(Options{Log: discard()}, pods, newMetrics())
	began := time.Now()
	p.runningSince("static", "file", began)
	p.runningSince("web", sourceAPI, began)
	for _, uid := range []string{"static", "web"} {
		pods.hears(uid, began.Add(-time.Second))
	}
	lists := func(after time.Duration) int {
		p.findMute(began.Add(after))
		return pods.asked()
	}
	assert.Zero(t, lists(29*time.Second), "kubelet has time to report")
	assert.Zero(t, lists(38*time.Second), "a look in ten seconds is enough")
	pods.hears("web", began.Add(time.Second))
	assert.Zero(t, lists(time.Minute), "it was heard of since; of a static pod the API server has a mirror only")
	pods.hears("web", began.Add(-time.Second))
	assert.Equal(t, 1, lists(2*time.Minute))
}

func TestWhileTheWatchIsMuteAStartEndsByItsSigns(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime, tuned(func(p *pacer) {
		quickSigns(p)
		p.mute.after, p.mute.every = 0, 0
	}))
	p := n.strangePod("web")
	p.spec.Annotations = map[string]string{annotationSource: sourceAPI}
	p.becomesKnown()
	p.runs()
	p.startsNow("app")
	p.becomes(throttle.Starting, throttle.WithinLimits)
	p.stillStarting("kubelet is to say when it is ready")
	n.pods.hears(p.uid, time.Now().Add(-time.Hour))
	n.p.wake()
	p.becomes(throttle.Started, throttle.Inferred)
}
