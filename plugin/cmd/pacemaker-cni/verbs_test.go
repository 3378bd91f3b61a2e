package main

import (
	"encoding/json"
	"os/exec"
	"strconv"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
)

func itoa(n int) string { return strconv.Itoa(n) }

func TestVerbsThatHaveNothingToDo(t *testing.T) {
	t.Parallel()
	for _, command := range []string{"DEL", "CHECK", "GC", "STATUS"} {
		a := room(t, gatetest.Socket(t))
		a.command = command
		p := call(t, a)
		gatetest.Receive(t, p.Ended, "the plugin ends")
		assert.Zero(t, p.ProcessState.ExitCode(), command)
		assert.Empty(t, p.Out.String(), command)
		assert.Empty(t, p.Err.String(), command)
	}
}

func TestVersions(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{`{"cniVersion":"0.4.0"}`: "0.4.0", `{}`: "1.1.0"} {
		p := call(t, ask{command: "VERSION", stdin: given})
		gatetest.Receive(t, p.Ended, "the plugin ends")
		var v struct {
			CNIVersion        string
			SupportedVersions []string
		}
		require.NoError(t, json.Unmarshal(p.Out.Bytes(), &v))
		assert.Equal(t, want, v.CNIVersion)
		assert.Equal(t, []string{"0.3.1", "0.4.0", "1.0.0", "1.1.0"}, v.SupportedVersions)
	}
	out, err := exec.Command(program.Path, "--version").Output()
	require.NoError(t, err)
	assert.Equal(t, "pacemaker-cni v0.0.0-test\n", string(out))
}

func TestNonsensicalCalls(t *testing.T) {
	t.Parallel()
	a := room(t, gatetest.Socket(t))
	for name, tt := range map[string]struct {
		ask
		code int
	}{
		"an unknown verb":  {ask{command: "DANCE", stdin: "{}"}, codeVariables},
		"no configuration": {ask{command: "ADD", stdin: "nothing"}, codeDecode},
		"no version":       {ask{command: "VERSION", stdin: "nothing"}, codeDecode},
		"no result":        {ask{command: "ADD", stdin: a.conf(t, "null")}, codeConf},
	} {
		code, msg := call(t, tt.ask).fails(t)
		assert.Equal(t, tt.code, code, name)
		assert.NotEmpty(t, msg)
	}
	out, err := exec.Command(program.Path).CombinedOutput()
	require.NoError(t, err)
	assert.Equal(t, usage, string(out))
}
