package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

var full = wire.Args{
	Socket: "/run/pod-pacemaker/gate.sock", LeaveAt: time.UnixMilli(3), Cgroup: "/kubepods/pod1/c1",
	Hello: wire.Hello{PodUID: "u1", ContainerID: "c1", Name: "ns/p", Since: time.UnixMicro(1), Deadline: time.UnixMilli(2)},
}

func TestArgvHasTheGivenFields(t *testing.T) {
	t.Parallel()
	assert.Equal(t,
		strings.Fields("--socket /run/pod-pacemaker/gate.sock --pod u1 --container c1 --name ns/p --since 1 --deadline 2 --leave-at 3 --cgroup /kubepods/pod1/c1"),
		full.Argv())
	assert.Empty(t, wire.Args{}.Argv())
	assert.Empty(t, wire.Args{Hello: wire.Hello{Name: "no such/pod name"}}.Argv(), "a bad name must not keep the pod from waiting")
}

func TestParseArgs(t *testing.T) {
	t.Parallel()
	got, err := wire.ParseArgs(full.Argv())
	require.NoError(t, err)
	assert.Equal(t, full, got)

	got, err = wire.ParseArgs([]string{"--container", "c1", "--socket", "/a=b c", "--pod", "u1", "--deadline", "0"})
	require.NoError(t, err)
	assert.Equal(t, wire.Args{Socket: "/a=b c", Hello: wire.Hello{PodUID: "u1", ContainerID: "c1"}}, got)
}

func TestParseArgsNamesWhatIsWrong(t *testing.T) {
	t.Parallel()
	need := []string{"--socket", "/s", "--pod", "u1", "--container", "c1"}
	for _, tt := range []struct {
		argv []string
		says string
	}{
		{nil, "--socket is missing"},
		{[]string{"--socket", "/s", "--container", "c1"}, "--pod is missing"},
		{[]string{"--socket", "/s", "--pod", "u1"}, "--container is missing"},
		{append(need, "--deadline", "soon"), `deadline "soon" must be a time in Unix milliseconds`},
		{append(need, "--deadline", "-1"), "deadline"},
		{append(need, "--deadline", "+1"), "deadline"},
		{append(need, "--deadline", "1e3"), "deadline"},
		{append(need, "--deadline", ""), "deadline"},
		{append(need, "--deadline", "253402300800000"), "deadline"},
		{append(need, "--deadline", "99999999999999999999"), "deadline"},
		{append(need, "--since", strings.Repeat("9", 100000)), "since"},
		{append(need, "--leave-at"), "--leave-at needs a value"},
		{append(need, "--pod", "two words"), "pod"},
		{append(need, "--pod", "ümlaut"), "pod"},
		{append(need, "--pod", strings.Repeat("x", 129)), "pod has 129 bytes, must have 1 to 128"},
		{append(need, "--name", "a\nb"), "name"},
		{append(need, "--socket", "/"+strings.Repeat("x", 107)), "--socket has 108 bytes, must have 1 to 107"},
		{append(need, "--cgroup", ""), "--cgroup has 0 bytes, must have 1 to 4095"},
		{append(need, "--color", "blue"), `argument "--color"`},
		{append(need, "blue"), `argument "blue"`},
	} {
		_, err := wire.ParseArgs(tt.argv)
		require.ErrorIs(t, err, wire.ErrMalformed, "%q", tt.argv)
		require.ErrorContains(t, err, tt.says)
		assert.Less(t, len(err.Error()), 600)
	}
}

func TestHelloLine(t *testing.T) {
	t.Parallel()
	h := wire.Hello{PodUID: "u1", ContainerID: "c1", Name: "ns/p", Since: time.UnixMicro(1), Deadline: time.UnixMilli(2)}
	assert.Equal(t, "wait 1 pod=u1 container=c1 name=ns/p since=1 deadline=2\n", string(wire.AppendHello(nil, h)))
	got, err := wire.ParseHello("wait 1 pod=u1 container=c1 name=ns/p since=1 deadline=2")
	require.NoError(t, err)
	assert.Equal(t, h, got)

	least := wire.Hello{PodUID: "u1", ContainerID: "c1"}
	assert.Equal(t, "wait 1 pod=u1 container=c1 since=0 deadline=0\n", string(wire.AppendHello(nil, least)))
}

func TestLongestHelloFitsALine(t *testing.T) {
	t.Parallel()
	year9999 := time.UnixMilli(253402300799999)
	a, err := wire.ParseArgs(wire.Args{
		Socket: "/s",
		Hello: wire.Hello{
			PodUID: strings.Repeat("u", 128), ContainerID: strings.Repeat("c", 128), Name: strings.Repeat("n", 320),
			Since: year9999, Deadline: year9999,
		},
	}.Argv())
	require.NoError(t, err)
	line := wire.AppendHello(nil, a.Hello)
	assert.LessOrEqual(t, len(line), wire.MaxLine)
	_, err = wire.ParseHello(strings.TrimSuffix(string(line), "\n"))
	require.NoError(t, err)
}

func TestParseHelloRefuses(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "wait", "waits 1 pod=u container=c", "wait 1", "wait 1 pod=u", "wait 1 container=c",
		"wait 1 pod=u container=", "wait 1 pod=u container=c pod=v", "wait 1 pod=u container=c name",
		"wait 1 pod=u  container=c", "wait 1 pod=u container=c since=x", "wait 1 pod=u container=c\r",
		"wait 1 pod=u container=c x=" + strings.Repeat("x", wire.MaxLine),
		"wait 2 pod=u container=c", "wait 2", "wait 11 pod=u container=c", "wait  pod=u",
	} {
		_, err := wire.ParseHello(line)
		require.ErrorIs(t, err, wire.ErrMalformed, "%q", line)
	}
}

func TestAnswerLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		answer wire.Answer
		line   string
		heard  wire.Answer
	}{
		{
			wire.Answer{Kind: wire.Turn, LeaveAt: time.UnixMilli(5), Position: 3}, "turn 5 3\n",
			wire.Answer{Kind: wire.Turn, LeaveAt: time.UnixMilli(5), Position: 3},
		},
		{
			wire.Answer{Kind: wire.Turn, LeaveAt: time.UnixMilli(5), Position: 3, Pace: 300*time.Millisecond + 1}, "turn 5 3 300\n",
			wire.Answer{Kind: wire.Turn, LeaveAt: time.UnixMilli(5), Position: 3, Pace: 300 * time.Millisecond},
		},
		{wire.Answer{Kind: wire.Turn, Position: -1}, "turn 0 0\n", wire.Answer{Kind: wire.Turn}},
		{wire.Answer{Kind: wire.Alive}, "alive\n", wire.Answer{Kind: wire.Alive}},
		{wire.Answer{Kind: wire.Go, Reason: "Admitted"}, "go Admitted\n", wire.Answer{Kind: wire.Go, Reason: "Admitted"}},
		{wire.Answer{Kind: wire.Go}, "go \n", wire.Answer{Kind: wire.Go}},
		{
			wire.Answer{Kind: wire.Abort, Reason: "A: b\nc\x1b[31m\u009b\xff"}, "abort A: b c [31m ?\n",
			wire.Answer{Kind: wire.Abort, Reason: "A: b c [31m ?"},
		},
		{
			wire.Answer{Kind: wire.Abort, Reason: strings.Repeat("ü", 1000)}, "abort " + strings.Repeat("ü", 256) + "\n",
			wire.Answer{Kind: wire.Abort, Reason: strings.Repeat("ü", 256)},
		},
	} {
		assert.Equal(t, tt.line, string(wire.AppendAnswer(nil, tt.answer)))
		heard, err := wire.ParseAnswer(strings.TrimSuffix(tt.line, "\n"))
		require.NoError(t, err)
		assert.Equal(t, tt.heard, heard)
	}
}

func TestParseAnswerRefuses(t *testing.T) {
	t.Parallel()
	for _, line := range []string{
		"", "stay", "GO now", "turn", "turn 5", "turn 5 x", "turn x 5", "turn 5 -1", "turn 5 5 x", "turn 5 5 -5", "turn 5 5 5 5", "turn 5 2147483648",
		strings.Repeat("x", 5000),
	} {
		_, err := wire.ParseAnswer(line)
		require.ErrorIs(t, err, wire.ErrMalformed, "%q", line)
		assert.Less(t, len(err.Error()), 100)
	}
}
