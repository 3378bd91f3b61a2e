package wire_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// A text that is read and understood survives writing and reading. It is one line that the other end accepts.

func FuzzParseHello(f *testing.F) {
	f.Add("wait 1 pod=u1 container=c1 name=ns/p since=1 deadline=2")
	f.Add("wait 1 pod=u1 container=c1 room=1")
	f.Add("wait 1 pod=u1 container=c1 room=1 brief=1")
	f.Add("wait 2 pod=u1")
	f.Add("wait 1 pod=u1 container=c1 x==y")
	f.Fuzz(func(t *testing.T, line string) {
		h, err := wire.ParseHello(line)
		if err != nil {
			return
		}
		written := string(wire.AppendHello(nil, h))
		requireLine(t, written)
		again, err := wire.ParseHello(strings.TrimSuffix(written, "\n"))
		require.NoError(t, err)
		require.Equal(t, h, again)
	})
}

func FuzzParseAnswer(f *testing.F) {
	f.Add("turn 1700000000000000 12")
	f.Add("turn 1700000000000000 12 300")
	f.Add("go Admitted")
	f.Add("abort Deleted: the pod\tis \xff deleted")
	f.Fuzz(func(t *testing.T, line string) {
		a, err := wire.ParseAnswer(line)
		if err != nil {
			return
		}
		written := string(wire.AppendAnswer(nil, a))
		requireLine(t, written)
		again, err := wire.ParseAnswer(strings.TrimSuffix(written, "\n"))
		require.NoError(t, err)
		require.Equal(t, a, again)
	})
}

func FuzzParseArgv(f *testing.F) {
	f.Add("/run/gate.sock", "wait 1 pod=u1 container=c1 name=ns/p", "turn 1700000000000000 1", "/kubepods/c1")
	f.Add("", "wait 1", "alive", "")
	f.Fuzz(func(t *testing.T, socket, hello, forecast, cgroup string) {
		s, h, a, c, err := wire.ParseArgv([]string{socket, hello, forecast, cgroup})
		if err != nil {
			require.ErrorIs(t, err, wire.ErrMalformed)
			return
		}
		s2, h2, a2, c2, err := wire.ParseArgv(wire.Argv(s, h, a, c))
		require.NoError(t, err)
		require.Equal(t, []any{s, h, a, c}, []any{s2, h2, a2, c2})
	})
}

func requireLine(t *testing.T, s string) {
	t.Helper()
	require.LessOrEqual(t, len(s), wire.MaxLine)
	require.Equal(t, len(s)-1, strings.IndexByte(s, '\n'))
}
