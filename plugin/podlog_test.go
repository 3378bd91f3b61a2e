package plugin

import (
	"testing"

	"github.com/sirupsen/logrus"
	logtest "github.com/sirupsen/logrus/hooks/test"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/throttle"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// The log lines of one pod are enough to understand what happened to it.
func TestTheLogTellsOnePodsStory(t *testing.T) {
	t.Parallel()
	n := newNode(t, oneAtATime)
	log := logtest.NewLocal(n.options.Log)
	holder := n.occupy("holder")
	ahead := n.pod("ahead").runs().waitsAtGate("app")
	job := n.pod("job", restarted("Never")).runs()
	_, err := job.create("app")
	require.Error(t, err)
	_, err = job.create("app")
	require.Error(t, err, "this is logged once, though the pod is refused twice")
	p := n.pod("story").runs()
	a := p.waitsAtGate("app")
	holder.getsReady()
	ahead.succeeds()
	ahead.pod.isDeleted()
	job.isDeleted()
	a.succeeds()
	p.getsReady()
	p.becomes(throttle.Started, reasons.Ready)

	story := func(uid string) (lines []logrus.Fields, messages []string) {
		for _, e := range log.AllEntries() {
			if e.Data["pod_uid"] == uid && e.Level <= logrus.InfoLevel {
				assert.Equal(t, "default", e.Data["pod_namespace"])
				lines, messages = append(lines, e.Data), append(messages, e.Message)
			}
		}
		return lines, messages
	}
	n.eventually("the end is logged", func() bool { _, m := story(p.uid); return len(m) == 3 })
	lines, messages := story(p.uid)
	require.Len(t, messages, 3)
	assert.Equal(t, "pod default/story waits in the gate", messages[0])
	assert.Regexp(t, `^start of pod default/story admitted after [0-9.]+m?s$`, messages[1])
	assert.Regexp(t, `^start of pod default/story ended after [0-9.]+m?s: Ready$`, messages[2])
	for _, line := range lines {
		assert.Equal(t, "story", line["pod_name"])
		assert.Equal(t, a.ctr.ID(), line["container_id"])
		assert.NotEmpty(t, line["reason"])
	}
	assert.Equal(t, 3, lines[0]["queue_position"])
	assert.Positive(t, lines[1]["wait_ms"])

	lines, messages = story(job.uid)
	require.NotEmpty(t, messages)
	assert.Equal(t, "pod default/job is refused, kubelet tries again", messages[0])
	assert.Equal(t, reasons.Concurrency, lines[0]["reason"])
	assert.NotEmpty(t, lines[0]["container_id"])
	assert.NotContains(t, messages[1:], messages[0])
}
