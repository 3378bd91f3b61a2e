package wire_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

func TestArgvIsReadable(t *testing.T) {
	t.Parallel()
	h := wire.Hello{PodUID: "u1", ContainerID: "c1", Name: "ns/p", Since: time.UnixMicro(1), Deadline: time.UnixMicro(2)}
	forecast := wire.Answer{Kind: wire.Forecast, LeaveAt: time.UnixMicro(3), Place: 4, Pace: 5 * time.Millisecond}
	argv := wire.Argv("/a=b c", h, forecast, "/kubepods/c1")
	assert.Equal(t, []string{"/a=b c", "wait 1 pod=u1 container=c1 name=ns/p since=1 deadline=2", "turn 3 4 5", "/kubepods/c1"}, argv)
	socket, hello, first, cgroup, err := wire.ParseArgv(argv)
	require.NoError(t, err)
	assert.Equal(t, []any{"/a=b c", h, forecast, "/kubepods/c1"}, []any{socket, hello, first, cgroup})

	argv = wire.Argv("/s", wire.Hello{PodUID: "u1", ContainerID: "c1", Name: "no such/pod name"}, wire.Answer{Kind: wire.Forecast}, "")
	_, hello, first, _, err = wire.ParseArgv(argv)
	require.NoError(t, err, "a bad name must not keep the pod from waiting")
	assert.Equal(t, wire.Hello{PodUID: "u1", ContainerID: "c1"}, hello)
	assert.Zero(t, first.LeaveAt)
}

func TestParseArgvSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	const hello, turn = "wait 1 pod=u1 container=c1", "turn 1 1"
	for _, tt := range []struct {
		argv []string
		says string
	}{
		{nil, "0 arguments, must be at least 4"},
		{[]string{"/s", hello, turn}, "3 arguments, must be at least 4"},
		{[]string{"/s", "wait 1 container=c1", turn, ""}, "without pod"},
		{[]string{"/s", hello + " deadline=soon", turn, ""}, `deadline "soon" must be a time in Unix microseconds`},
		{[]string{"/s", hello + " deadline=-1", turn, ""}, "deadline"},
		{[]string{"/s", hello + " deadline=+1", turn, ""}, "deadline"},
		{[]string{"/s", hello + " deadline=1e3", turn, ""}, "deadline"},
		{[]string{"/s", hello + " deadline=", turn, ""}, `deadline "" must be a time`},
		{[]string{"/s", hello + " deadline=253402300800000000", turn, ""}, "deadline"},
		{[]string{"/s", hello + " deadline=99999999999999999999", turn, ""}, "deadline"},
		{[]string{"/s", hello + " since=" + strings.Repeat("9", 800), turn, ""}, "since"},
		{[]string{"/s", "wait 1 pod=ümlaut container=c1", turn, ""}, "pod"},
		{[]string{"/s", "wait 1 pod=" + strings.Repeat("x", 129), turn, ""}, "pod has 129 bytes, must have 1 to 128"},
		{[]string{"/s", hello + " name=a\nb", turn, ""}, "name"},
		{[]string{"/s", hello, "turn soon 1", ""}, "leave-at"},
		{[]string{"/s", hello, "go Admitted", ""}, "must be a forecast"},
		{[]string{"/s", hello, "", ""}, "answer"},
	} {
		_, _, _, _, err := wire.ParseArgv(tt.argv)
		require.ErrorIs(t, err, wire.ErrMalformed, "%q", tt.argv)
		require.ErrorContains(t, err, tt.says)
		assert.Less(t, len(err.Error()), 600)
	}
}

func TestHelloLine(t *testing.T) {
	t.Parallel()
	h := wire.Hello{PodUID: "u1", ContainerID: "c1", Name: "ns/p", Since: time.UnixMicro(1), Deadline: time.UnixMicro(2)}
	assert.Equal(t, "wait 1 pod=u1 container=c1 name=ns/p since=1 deadline=2\n", string(wire.AppendHello(nil, h)))
	got, err := wire.ParseHello("wait 1 pod=u1 container=c1 name=ns/p since=1 deadline=2")
	require.NoError(t, err)
	assert.Equal(t, h, got)

	least := wire.Hello{PodUID: "u1", ContainerID: "c1"}
	later, err := wire.ParseHello("wait 1 pod=u1 container=c1 colour=blue")
	require.NoError(t, err)
	assert.Equal(t, least, later, "fields of later hooks are ignored")
	assert.Equal(t, "wait 1 pod=u1 container=c1 since=0 deadline=0\n", string(wire.AppendHello(nil, least)))
}

func TestLongestHelloFitsALine(t *testing.T) {
	t.Parallel()
	year9999 := time.UnixMicro(253402300799999999)
	h := wire.Hello{
		PodUID: strings.Repeat("u", 128), ContainerID: strings.Repeat("c", 128), Name: strings.Repeat("n", 320),
		Since: year9999, Deadline: year9999, Room: true,
	}
	line := wire.AppendHello(nil, h)
	assert.LessOrEqual(t, len(line), wire.MaxLine)
	got, err := wire.ParseHello(strings.TrimSuffix(string(line), "\n"))
	require.NoError(t, err)
	assert.Equal(t, h, got)
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
			wire.Answer{Kind: wire.Forecast, LeaveAt: time.UnixMicro(5), Place: 3}, "turn 5 3\n",
			wire.Answer{Kind: wire.Forecast, LeaveAt: time.UnixMicro(5), Place: 3},
		},
		{
			wire.Answer{Kind: wire.Forecast, LeaveAt: time.UnixMicro(5), Place: 3, Pace: 300*time.Millisecond + 1}, "turn 5 3 300\n",
			wire.Answer{Kind: wire.Forecast, LeaveAt: time.UnixMicro(5), Place: 3, Pace: 300 * time.Millisecond},
		},
		{wire.Answer{Kind: wire.Forecast, Place: -1}, "turn 0 0\n", wire.Answer{Kind: wire.Forecast}},
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
