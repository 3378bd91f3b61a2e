package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/gatetest"
)

var program gatetest.Program

func TestMain(m *testing.M) {
	program.M = m
	goleak.VerifyTestMain(&program)
}

// result is the result of the plugins before this one. Its odd spaces must survive.
const result = `{"cniVersion":"1.0.0", "interfaces":[{"name":"eth0","sandbox":"/proc/1/ns/net"}],
  "ips":[{"address":"10.1.2.3/24","interface":0}], "dns":{} }`

// ask is one call of the plugin by a runtime.
type ask struct {
	command, uid, namespace, netns string
	socket, confDir                string
	settleMillis                   int
	stdin                          string // replaces the input that follows from the other fields
}

// plugin is a running pacemaker-cni.
type plugin struct{ *gatetest.Started }

// room returns an ask for a pod that waits at a socket. The folder did not change since the pod got its network
// namespace.
func room(tb testing.TB, socket string) ask {
	tb.Helper()
	dir := tb.TempDir()
	a := ask{command: "ADD", uid: "u1", namespace: "ns", socket: socket, confDir: filepath.Join(dir, "net.d"), netns: filepath.Join(dir, "netns")}
	require.NoError(tb, os.Mkdir(a.confDir, 0o700))
	for _, name := range []string{"00-pod-pacemaker.conflist", "10-net.conflist"} {
		require.NoError(tb, os.WriteFile(filepath.Join(a.confDir, name), []byte("{}"), 0o600))
	}
	laterThan(tb, filepath.Join(a.confDir, "10-net.conflist"), a.netns)
	return a
}

// laterThan makes a file whose change is later than the change of another file, by the kernel's clock for files.
func laterThan(tb testing.TB, file, later string) {
	tb.Helper()
	f, ok := openFolder(filepath.Dir(file))
	require.True(tb, ok)
	for f.newest >= changeOf(tb, later) {
		require.NoError(tb, os.WriteFile(later, nil, 0o600))
	}
}

func changeOf(tb testing.TB, path string) int64 {
	tb.Helper()
	info, err := os.Stat(path)
	if err != nil {
		return 0
	}
	return info.ModTime().UnixNano()
}

func (a ask) conf(tb testing.TB, prev string) string {
	tb.Helper()
	text, err := json.Marshal(map[string]any{
		"cniVersion": "1.0.0", "name": "net", "type": "pacemaker-cni", "socket": a.socket, "confDir": a.confDir,
		"timeoutMillis": 3600_000, "settleMillis": a.settleMillis,
	})
	require.NoError(tb, err)
	return strings.TrimSuffix(string(text), "}") + `,"prevResult":` + prev + "}"
}

func call(tb testing.TB, a ask) plugin {
	tb.Helper()
	cmd := exec.Command(program.Path)
	if a.stdin == "" {
		a.stdin = a.conf(tb, result)
	}
	cmd.Env = []string{
		"CNI_COMMAND=" + a.command, "CNI_CONTAINERID=s1", "CNI_NETNS=" + a.netns, "CNI_IFNAME=eth0", "CNI_PATH=/nowhere",
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=" + a.namespace + ";K8S_POD_NAME=p;K8S_POD_INFRA_CONTAINER_ID=s1;K8S_POD_UID=" + a.uid,
		"GOMAXPROCS=64", // as on a node with as many CPUs
	}
	cmd.Stdin = strings.NewReader(a.stdin)
	return plugin{gatetest.Start(tb, cmd)}
}

// passes makes sure that the plugin lets the pod start.
func (p plugin) passes(tb testing.TB) (said string) {
	tb.Helper()
	gatetest.Receive(tb, p.Ended, "the plugin ends")
	assert.Zero(tb, p.ProcessState.ExitCode())
	assert.True(tb, bytes.Equal([]byte(result+"\n"), p.Out.Bytes()), "the result is unchanged to the byte: %s", p.Out.Bytes())
	return p.Err.String()
}

// fails makes sure that the plugin fails the pod, and returns the code and the message.
func (p plugin) fails(tb testing.TB) (code int, msg string) {
	tb.Helper()
	gatetest.Receive(tb, p.Ended, "the plugin ends")
	assert.Equal(tb, 1, p.ProcessState.ExitCode())
	var e struct {
		CNIVersion, Msg string
		Code            int
	}
	require.NoError(tb, json.Unmarshal(p.Out.Bytes(), &e), p.Out.String())
	assert.NotEmpty(tb, e.CNIVersion)
	return e.Code, e.Msg
}
