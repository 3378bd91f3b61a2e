package main

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// puppet is a daemon that runs until it is stopped, or fails at once.
type puppet struct {
	options      plugin.Options
	fails        error
	running      chan struct{}
	ready, stuck atomic.Bool
}

func (p *puppet) Alive(context.Context) error {
	if p.stuck.Load() {
		return errors.New("stuck")
	}
	return nil
}

func (p *puppet) Run(ctx context.Context) error {
	close(p.running)
	if p.fails != nil {
		return p.fails
	}
	<-ctx.Done()
	return nil
}

func (p *puppet) Ready() error {
	if !p.ready.Load() {
		return errors.New("not yet")
	}
	return nil
}

// stage is a program whose daemon is a puppet.
type stage struct {
	program
	out, errs written
	puppet    *puppet
}

func newStage(env map[string]string) *stage {
	s := &stage{puppet: &puppet{running: make(chan struct{})}}
	s.program = program{
		stdin: strings.NewReader(""), stdout: &s.out, stderr: &s.errs,
		env: func(name string) string { return env[name] },
		newDaemon: func(o plugin.Options) (daemon, error) {
			s.puppet.options = o
			return s.puppet, nil
		},
		onLogger: func(*logrus.Logger) {}, // the Kubernetes client has one log for all tests
	}
	return s
}

// options runs a daemon with the arguments, stops it, and returns the options that it got.
func (s *stage) options(t *testing.T, args ...string) plugin.Options {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	code := make(chan int, 1)
	go func() { code <- s.run(ctx, append([]string{"run"}, args...)) }()
	select {
	case <-s.puppet.running:
		cancel()
		require.Equal(t, exitOK, <-code)
	case c := <-code:
		cancel()
		t.Fatalf("run ended with %d: %s", c, s.errs.String())
	}
	o := s.puppet.options
	assert.NotNil(t, o.Log)
	assert.NotNil(t, o.LogDropped)
	o.Log, o.LogDropped = nil, nil
	return o
}

// It is not parallel, because a daemon of another test would get the signal as well.
func TestASignalStopsTheDaemon(t *testing.T) {
	s := newStage(nil)
	code := make(chan int, 1)
	go func() { code <- s.run(t.Context(), []string{"run"}) }()
	<-s.puppet.running
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGTERM))
	assert.Equal(t, exitOK, <-code, s.errs.String())
	assert.Contains(t, s.errs.String(), "msg=stopped")
}

func TestRunHasTheDocumentedDefaults(t *testing.T) {
	t.Parallel()
	host, err := os.Hostname()
	require.NoError(t, err)
	assert.Equal(t, plugin.Options{
		NodeName: strings.ToLower(host), NRISocket: "/var/run/nri/nri.sock", NRIIndex: "05",
		RunDir: "/run/pod-pacemaker", StateDir: "/var/lib/pod-pacemaker", GatePath: "/opt/pod-pacemaker/bin/pacemaker-gate", Programs: programs(t),
		GateTimeout: 100 * time.Second, Hold: 200 * time.Millisecond,
		CNI: cni.UseAuto, CNIConfDir: "/etc/cni/net.d", CNIBinDir: "/opt/cni/bin",
		Namespace: "pod-pacemaker",
		Gate:      waiting.GateAuto, RefuseAt: waiting.RefuseAuto, HTTPAddress: "127.0.0.1:9464",
		ProcRoot: "/proc", CgroupRoot: "/sys/fs/cgroup", Version: "dev", Commit: "unknown", ContainerdState: "/run/containerd",
	}, newStage(nil).options(t))
}

func TestRunPassesEveryFlagOn(t *testing.T) {
	t.Parallel()
	assert.Equal(t, plugin.Options{
		NodeName: "n", Kubeconfig: "/k", ConfigFile: "/c", NRISocket: "/n.sock", NRIIndex: "10",
		RunDir: "/run/r", StateDir: "/s", GatePath: "", GateTimeout: 10 * time.Second, Hold: 0,
		Namespace: "ns", CNI: cni.UseOff, CNIConfDir: "/net.d", CNIBinDir: "/plugins", Programs: programs(t),
		Gate: waiting.GateNever, RefuseAt: waiting.RefuseContainer, Instance: "blue", HTTPAddress: "",
		ProcRoot: "/host/proc", CgroupRoot: "/sys/fs/cgroup", Version: "dev", Commit: "unknown",
		ContainerdState: "/state", RefuseLargeEnvironments: true, WhySocket: "/w.sock",
	}, newStage(map[string]string{"NODE_NAME": "other", "KUBERNETES_SERVICE_HOST": "10.0.0.1"}).options(t,
		"--node-name=n", "--namespace=ns", "--kubeconfig=/k", "--config=/c", "--nri-socket=/n.sock", "--nri-index=10", "--run-dir=/run/r",
		"--containerd-state=/state", "--why-socket=/w.sock", "--refuse-large-environments",
		"--gate-path=", "--gate-timeout=10s", "--hold=0", "--gate=never", "--refuse-at=container", "--instance=blue",
		"--http=", "--state-dir=/s", "--proc-root=/host/proc", "--cni=off", "--cni-conf-dir=/net.d", "--cni-bin-dir=/plugins", "--log-level=debug", "--log-format=json"))
}

// In its pod, the daemon must find itself in the state of containerd.
func TestRunKnowsWhetherItIsInAPod(t *testing.T) {
	t.Parallel()
	for first, inPod := range map[string]bool{"pod-pacemaker\x00run\x00": true, "/sbin/init\x00": false} {
		s := newStage(nil)
		s.firstProcess = file(t, first)
		assert.Equal(t, inPod, s.options(t).InPod, first)
	}
}

// programs returns the folder of this program.
func programs(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return filepath.Dir(self)
}

// An administrator may copy the host's name to NODE_NAME as it is. kubelet registers the node in lower case.
func TestWhatOneFlagOrVariableSets(t *testing.T) {
	t.Parallel()
	kubelet := file(t, "kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\nruntimeRequestTimeout: 15m\n")
	patient := file(t, "kind: KubeletConfiguration\nruntimeRequestTimeout: 24h\n")
	host, err := os.Hostname()
	require.NoError(t, err)
	inPod := "NODE_NAME=worker-3 POD_NAMESPACE=kube-pace KUBERNETES_SERVICE_HOST=10.0.0.1"
	room := func(o plugin.Options) any { return o.CNI }
	runDir := func(o plugin.Options) any { return o.Instance + " " + o.RunDir }
	node := func(o plugin.Options) any { return o.NodeName }
	timeout := func(o plugin.Options) any { return o.GateTimeout }
	for _, c := range []struct {
		env, args string
		of        func(plugin.Options) any
		want      any
	}{
		{"", "--cni", room, cni.UseOn},
		{"", "--cni=on", room, cni.UseOn},
		{"", "--cni=off", room, cni.UseOff},
		{"", "--cni=auto", room, cni.UseAuto},
		{"", "--instance canary", runDir, "canary /run/pod-pacemaker/canary"},
		{"", "--instance canary --run-dir /run/r", runDir, "canary /run/r"},
		{inPod, "", node, "worker-3"},
		{inPod, "", func(o plugin.Options) any { return o.Namespace }, "kube-pace"},
		{inPod, "", func(o plugin.Options) any { return o.InCluster && !o.Standalone() }, true},
		{"", "--kubeconfig=/k", node, strings.ToLower(host)}, // it may have none yet when systemd loads the daemon's unit
		{"NODE_NAME=Worker-3", "--kubeconfig=/k", node, "worker-3"},
		{"", "--kubelet-config " + kubelet, timeout, 12 * time.Minute},
		{"", "--gate-timeout 10s --kubelet-config " + kubelet, timeout, 10 * time.Second},
		{"", "--kubelet-config " + patient, timeout, time.Hour},
	} {
		env := map[string]string{}
		for variable := range strings.FieldsSeq(c.env) {
			name, value, _ := strings.Cut(variable, "=")
			env[name] = value
		}
		assert.Equal(t, c.want, c.of(newStage(env).options(t, strings.Fields(c.args)...)), "%s %s", c.env, c.args)
	}
}

func TestRunRefusesWrongConfiguration(t *testing.T) {
	t.Parallel()
	badConfig := file(t, strings.Replace(twoAtATime, "{value: 2}", "{value: 0}", 1))
	for _, c := range []struct {
		args []string
		env  map[string]string
		want []string
	}{
		{[]string{"--nri-index=5", "--hold=2s", "--gate-path=gate", "--run-dir=run"}, nil, []string{
			`--nri-index: "5": must be two digits, like "05"`,
			`--run-dir: "run": must be an absolute path`,
			`--gate-path: "gate": must be an absolute path on the host, or empty for no gate`,
			`--hold: 2s: must be from 0s to 1s`,
		}},
		{nil, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, []string{"--node-name: must be set when an API server is used"}},
		{[]string{"--kubeconfig=/k"}, map[string]string{"KUBERNETES_SERVICE_HOST": "10.0.0.1"}, []string{"--node-name: must be set when an API server is used"}},
		{nil, map[string]string{"NODE_NAME": "Worker_3"}, []string{`--node-name: "worker_3": `}},
		{[]string{"--node-name=Worker_3"}, nil, []string{`--node-name: "Worker_3": `}},
		{[]string{"--proc-root=proc"}, nil, []string{`--proc-root: "proc": must be an absolute path`}},
		{[]string{"--namespace=Ns"}, nil, []string{`--namespace: "Ns": `}},
		{[]string{"--instance=Blue"}, nil, []string{`--instance: "Blue": `}},
		{[]string{"--http=9464"}, nil, []string{`--http: "9464": must be HOST:PORT`}},
		{[]string{"--http=127.0.0.1:0"}, nil, []string{`--http: "127.0.0.1:0": must be HOST:PORT`}},
		{[]string{"--kubelet-config=" + file(t, "kind: Pod\n")}, nil, []string{"--kubelet-config: kubelet configuration "}},
		{[]string{"--config=" + badConfig}, nil, []string{badConfig + ": spec.throttleConfig.maxConcurrent.value: Invalid value: 0: "}},
	} {
		s := newStage(c.env)
		s.newDaemon = realDaemon
		code := s.run(t.Context(), append([]string{"run"}, c.args...))
		assert.Equal(t, exitInvalid, code, c.args)
		lines := strings.Split(strings.TrimSuffix(s.errs.String(), "\n"), "\n")
		if assert.Len(t, lines, len(c.want), s.errs.String()) {
			for i, want := range c.want {
				assert.Contains(t, lines[i], want)
				assert.True(t, strings.HasPrefix(lines[i], "pod-pacemaker: "), lines[i])
			}
		}
	}
}

// systemd restarts a daemon that ended with 1, but not a daemon that ended with 2.
func TestRunEndsWith1WhereARestartMayMendIt(t *testing.T) {
	t.Parallel()
	config := file(t, twoAtATime)
	for want, args := range map[string][]string{
		"prepare the daemon: read configuration: open /nowhere: no such file or directory":                     {"--config=/nowhere"},
		"prepare the daemon: access to the API server: stat /nowhere: no such file or directory":               {"--config=" + config, "--kubeconfig=/nowhere", "--node-name=n"},
		"--kubelet-config: kubelet configuration: open /nowhere: no such file or directory":                    {"--config=" + config, "--kubelet-config=/nowhere"},
		"prepare the daemon: access to the API server: invalid configuration: no configuration has been provi": {"--config=" + config, "--kubeconfig=" + file(t, ""), "--node-name=n"},
	} {
		s := newStage(nil)
		s.newDaemon = realDaemon
		code := s.run(t.Context(), append([]string{"run"}, args...))
		assert.Equal(t, exitFailure, code, args)
		assert.Equal(t, 1, strings.Count(s.errs.String(), "\n"), s.errs.String())
		assert.True(t, strings.HasPrefix(s.errs.String(), "pod-pacemaker: "+want), s.errs.String())
		assert.NotContains(t, s.errs.String(), config, "the error must not name a file without a fault")
	}
}

func TestRunThatFailsIsExitCode1(t *testing.T) {
	t.Parallel()
	s := newStage(nil)
	s.puppet.fails = errors.New("gate socket: another daemon answers there")
	assert.Equal(t, exitFailure, s.run(t.Context(), []string{"run", "--log-format=json"}))
	lines := strings.Split(strings.TrimSpace(s.errs.String()), "\n")
	assert.Equal(t, "pod-pacemaker: run: gate socket: another daemon answers there", lines[len(lines)-1])
	var begins map[string]any
	require.NoError(t, json.Unmarshal([]byte(lines[0]), &begins))
	assert.Equal(t, "starting", begins[logrus.FieldKeyMsg])
}

// The real daemon runs on a node without a runtime. It stays alive, says what is missing, and stops on request.
func TestRunRealDaemonWithoutARuntime(t *testing.T) {
	t.Parallel()
	dir := shortDir(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	p, config := newStage(nil), file(t, twoAtATime)
	p.newDaemon = realDaemon
	code := make(chan int, 1)
	go func() {
		code <- p.run(ctx, []string{
			"run", "--node-name=worker-3", "--run-dir=" + dir + "/run", "--nri-socket=" + dir + "/nri.sock",
			"--config=" + config, "--http=", "--gate-path=", "--log-format=text",
		})
	}()
	var s admin.Status
	require.Eventually(t, func() bool {
		var err error
		s, err = admin.NewClient(adminSocket(dir + "/run")).Status(t.Context())
		return err == nil && s.Config.Name != "" && strings.Contains(s.NotReady, "nri.sock")
	}, time.Minute, 5*time.Millisecond)
	assert.False(t, s.Ready)
	assert.Equal(t, "worker-3", s.Node)
	assert.True(t, s.Standalone)
	assert.Equal(t, "two-at-a-time", s.Config.Name)
	assert.Equal(t, 2, s.Limit)

	_, stdout, _ := call(t, "status", "--run-dir", dir+"/run")
	assert.Contains(t, stdout, "NOT READY, pods start unpaced: NRI socket: ")
	exit, _, stderr := call(t, "why", "default/web-0", "--run-dir", dir+"/run")
	assert.Equal(t, exitFailure, exit)
	assert.Contains(t, stderr, "default/web-0: not known on this node")

	cancel()
	assert.Equal(t, exitOK, <-code, p.errs.String())
	assert.Contains(t, p.errs.String(), "msg=stopped")
}

// The limit of the cgroup, which the DaemonSet and the unit name, also counts what the Go runtime does not know of. No other
// test runs at the same time as this one.
func TestTheDaemonStaysBelowTheMemoryLimit(t *testing.T) {
	limit := debug.SetMemoryLimit(256 << 20)
	t.Cleanup(func() { debug.SetMemoryLimit(limit) })
	s := newStage(nil)
	s.puppet.fails = errors.New("it ends at once")
	s.run(t.Context(), []string{"run"})
	assert.EqualValues(t, 240<<20, debug.SetMemoryLimit(-1))
}
