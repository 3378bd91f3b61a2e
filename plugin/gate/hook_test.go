package gate_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

func TestHookCarriesItsArguments(t *testing.T) {
	t.Parallel()
	args := gate.Args{
		Socket: "/run/pod pacemaker/gate.sock", LeaveAt: time.UnixMilli(3),
		Hello: gate.Hello{PodUID: "u1", ContainerID: "c1", Name: "ns/p", Since: time.UnixMicro(1), Deadline: time.UnixMilli(2)},
	}
	h := gate.Hook("/opt/gate", args)
	assert.Equal(t, "/opt/gate", h.GetPath())
	assert.Nil(t, h.GetTimeout())
	require.Equal(t, "/opt/gate", h.GetArgs()[0], "the first argument is the program, as for execve")
	parsed, err := wire.ParseArgs(h.GetArgs()[1:])
	require.NoError(t, err)
	assert.Equal(t, args, parsed)
}
