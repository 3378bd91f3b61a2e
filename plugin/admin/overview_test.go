package admin

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

// herdStatus is the status of a herd. Every field that could contain a name is set.
func herdStatus(t *testing.T) Status {
	t.Helper()
	l := herd(t)
	s := NewStatus(at(15), l.Snapshot(at(15)), l.Recent())
	s.Node, s.Version, s.Since = "node-1", "v1.2.3", at(-60)
	s.Runtime = Runtime{Name: "containerd", Version: "2.4.2", Socket: "/secret/nri.sock", Connected: true, LastError: "secret"}
	s.Config = Config{Name: "default", Origin: "API", Generation: 4, Spec: &v1alpha1.PacemakerConfigSpec{
		NodeSelector: map[string]v1alpha1.LabelValue{"secret": "x"},
	}}
	return s
}

func TestOverviewCounts(t *testing.T) {
	t.Parallel()
	s := herdStatus(t)
	o := newOverview(s)
	assert.Equal(t, Slots{Used: 2, Of: 2, Without: 1}, o.Slots)
	assert.Equal(t, len(s.Waiting), o.Waiting.Count)
	sum := 0
	for _, count := range o.Waiting.Reasons {
		sum += count
	}
	assert.Equal(t, o.Waiting.Count, sum)
	longest := Seconds(0)
	for _, p := range s.Waiting {
		longest = max(longest, p.WaitedSeconds)
	}
	assert.InDelta(t, float64(longest), float64(o.Waiting.LongestSeconds), 0)
	assert.Positive(t, longest)
	assert.Equal(t, 1, o.Ended[reasons.Ready])
	text, err := json.Marshal(newOverview(Status{}))
	require.NoError(t, err)
	assert.Contains(t, string(text), `"reasons":{}`)
	assert.Contains(t, string(text), `"ended":{}`)
}

// Every client that reaches the address can read the page. A user who may not list pods must not learn their names
// there.
func TestOverviewNamesNoPod(t *testing.T) {
	t.Parallel()
	s := herdStatus(t)
	s.HeldBy = &Held{Reason: reasons.StartAfter, Detail: "hidden/agent is not ready"}
	s.StartAfter = []StartAfter{{For: "hidden/agent"}}
	text, err := json.Marshal(newOverview(s))
	require.NoError(t, err)
	require.Equal(t, "hidden/agent is not ready", s.HeldBy.Detail)
	names := []string{"secret", "hidden"}
	for _, pods := range [][]Pod{s.Waiting, s.Starting, s.Ended} {
		for _, p := range pods {
			names = append(names, p.Name, p.UID)
			if p.Namespace != "default" { // this is also the configuration's name
				names = append(names, p.Namespace)
			}
		}
	}
	require.Greater(t, len(names), 10)
	for _, name := range names {
		assert.NotContains(t, string(text), name)
	}
}

func TestPageIsServedWithItsOwnScriptAlone(t *testing.T) {
	t.Parallel()
	srv := httptest.NewServer(httpHandler(&node{limiter: herd(t)}, prometheus.NewRegistry()))
	defer srv.Close()
	reply, err := http.Get(srv.URL + "/") //nolint:noctx // the server is in this process
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	assert.Equal(t, "text/html; charset=utf-8", reply.Header.Get("Content-Type"))
	policy := reply.Header.Get("Content-Security-Policy")
	assert.Contains(t, policy, "default-src 'none'")
	assert.NotContains(t, policy, "unsafe")
	assert.NotRegexp(t, `(src|href)\s*=\s*"`, page, "the page must load nothing")

	code, body, err := get(t, srv.URL+"/status.json")
	require.NoError(t, err)
	assert.Equal(t, http.StatusOK, code)
	var o Overview
	require.NoError(t, json.Unmarshal([]byte(body), &o))
	assert.Equal(t, "node-1", o.Node)
	assert.Equal(t, 2, o.Slots.Used)
}
