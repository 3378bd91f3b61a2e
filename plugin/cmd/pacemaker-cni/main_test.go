package main

import (
	"bytes"
	"encoding/json"
	"fmt"
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

// binary is the program as it ships.
var binary string

func TestMain(m *testing.M) { goleak.VerifyTestMain(withBinary{m}) }

// withBinary builds the program before the tests run.
type withBinary struct{ *testing.M }

func (m withBinary) Run() int {
	dir, err := os.MkdirTemp("", "pacemaker-cni")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	binary = filepath.Join(dir, "pacemaker-cni")
	build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -X main.version=v0.0.0-test", "-o", binary, ".")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		panic(fmt.Errorf("go build: %w\n%s", err, out))
	}
	return m.M.Run()
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
type plugin struct {
	*exec.Cmd
	stdout, stderr bytes.Buffer
	ended          chan struct{}
}

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

func call(tb testing.TB, a ask) *plugin {
	tb.Helper()
	p := &plugin{Cmd: exec.Command(binary), ended: make(chan struct{})}
	if a.stdin == "" {
		a.stdin = a.conf(tb, result)
	}
	p.Env = []string{
		"CNI_COMMAND=" + a.command, "CNI_CONTAINERID=s1", "CNI_NETNS=" + a.netns, "CNI_IFNAME=eth0", "CNI_PATH=/nowhere",
		"CNI_ARGS=IgnoreUnknown=1;K8S_POD_NAMESPACE=" + a.namespace + ";K8S_POD_NAME=p;K8S_POD_INFRA_CONTAINER_ID=s1;K8S_POD_UID=" + a.uid,
		"GOMAXPROCS=64", // as on a node with as many CPUs
	}
	p.Stdin, p.Stdout, p.Stderr = strings.NewReader(a.stdin), &p.stdout, &p.stderr
	require.NoError(tb, p.Start())
	go func() {
		defer close(p.ended)
		_ = p.Wait() // ProcessState says how it ended
	}()
	tb.Cleanup(func() {
		_ = p.Process.Kill() // it has ended, unless the test failed
		<-p.ended
	})
	return p
}

// passes makes sure that the plugin lets the pod start.
func (p *plugin) passes(tb testing.TB) (said string) {
	tb.Helper()
	gatetest.Receive(tb, p.ended, "the plugin ends")
	assert.Zero(tb, p.ProcessState.ExitCode())
	assert.True(tb, bytes.Equal([]byte(result+"\n"), p.stdout.Bytes()), "the result is unchanged to the byte: %s", p.stdout.Bytes())
	return p.stderr.String()
}

// fails makes sure that the plugin fails the pod, and returns the code and the message.
func (p *plugin) fails(tb testing.TB) (code int, msg string) {
	tb.Helper()
	gatetest.Receive(tb, p.ended, "the plugin ends")
	assert.Equal(tb, 1, p.ProcessState.ExitCode())
	var e struct {
		CNIVersion, Msg string
		Code            int
	}
	require.NoError(tb, json.Unmarshal(p.stdout.Bytes(), &e), p.stdout.String())
	assert.NotEmpty(tb, e.CNIVersion)
	return e.Code, e.Msg
}
