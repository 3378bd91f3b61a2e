package preflight

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// write makes a file under a folder, with the folders that lead to it. A program that is open for writing cannot be
// executed, so no process that another test starts meanwhile may inherit the open file.
func write(t *testing.T, mode os.FileMode, path, content string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	syscall.ForkLock.RLock()
	err := os.WriteFile(path, []byte(content), 0o600)
	syscall.ForkLock.RUnlock()
	require.NoError(t, err)
	require.NoError(t, os.Chmod(path, mode))
	return path
}

// process makes a process of root on the host.
func process(t *testing.T, proc string, pid int, name string) (dir string) {
	t.Helper()
	dir = filepath.Join(proc, strconv.Itoa(pid))
	write(t, 0o644, dir+"/comm", name+"\n")
	write(t, 0o644, dir+"/status", "Name:\t"+name+"\nUid:\t0\t0\t0\t0\n")
	inNamespace(t, dir, 1)
	return dir
}

// inNamespace moves a process to a mount namespace; that of the host is 1.
func inNamespace(t *testing.T, process string, namespace int) {
	t.Helper()
	require.NoError(t, os.RemoveAll(process+"/ns"))
	require.NoError(t, os.MkdirAll(process+"/ns", 0o755))
	require.NoError(t, os.Symlink(fmt.Sprintf("mnt:[%d]", namespace), process+"/ns/mnt"))
}

// healthy returns a node without faults: its proc, sockets and files.
func healthy(t *testing.T) (dir string, o Options) {
	t.Helper()
	dir, err := os.MkdirTemp("/tmp", "pf")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, os.RemoveAll(dir)) })
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: dir + "/nri.sock", Net: "unix"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	write(t, 0o644, dir+"/proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=1\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=0\n")
	kubelet := write(t, 0o644, dir+"/kubelet.yaml", "kind: KubeletConfiguration\nruntimeRequestTimeout: 2m\n")
	process(t, dir+"/proc", 1, "systemd")
	process(t, dir+"/proc", 7, "kubelet")
	write(t, 0o644, dir+"/proc/7/cmdline", "/usr/bin/kubelet\x00--v=2\x00--config="+kubelet+"\x00")
	process(t, dir+"/proc", 8, "containerd")
	write(t, 0o755, dir+"/proc/8/exe", "#!/bin/sh\necho containerd github.com/containerd/containerd/v2 v2.4.2 abc\n")
	write(t, 0o644, dir+"/cni/10-net.conflist", `{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"ptp"}]}`)
	write(t, 0o755, dir+"/plugins/ptp", "")
	config := write(t, 0o644, dir+"/config.yaml", "apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: two}\nspec: {throttleConfig: {maxConcurrent: {value: 2}}}\n")
	return dir, Options{
		Options: plugin.Options{
			Version: "v0.1.0", NodeName: "worker-3", ConfigFile: config, NRISocket: dir + "/nri.sock", RunDir: dir + "/run",
			ProcRoot: dir + "/proc", CgroupRoot: dir, Gate: waiting.GateAuto, GateTimeout: 90 * time.Second,
			GatePath: write(t, 0o755, dir+"/bin/pacemaker-gate", "#!/bin/sh\necho pacemaker-gate\n"),
			CNI:      cni.UseAuto, CNIConfDir: dir + "/cni", CNIBinDir: dir + "/plugins",
		},
	}
}

// level returns the only finding of a check.
func level(t *testing.T, r Report, check string) Finding {
	t.Helper()
	var found []Finding
	for _, f := range r.Findings {
		if f.Check == check {
			found = append(found, f)
		}
		assert.Equal(t, f.Level == OK, f.Do == "", "a finding that is not ok says what to do: %+v", f)
		assert.NotContains(t, f.Says+f.Do, "\n")
	}
	require.Len(t, found, 1, "%s in %+v", check, r)
	return found[0]
}

func run(t *testing.T, o Options) Report {
	t.Helper()
	report, err := Run(t.Context(), o)
	require.NoError(t, err)
	return report
}

func TestAHealthyNodeHasNoFault(t *testing.T) {
	t.Parallel()
	dir, o := healthy(t)
	report := run(t, o)
	assert.Zero(t, report.Count(Fault), "%+v", report)
	for check, says := range map[string]string{
		"config":   `"two": 2 at a time`,
		"nri":      "nri.sock is there",
		"runtime":  "containerd 2.4.2 has no known fault",
		"gate":     "can be executed, and a container may wait there for up to 1m30s",
		"cni":      "10-net.conflist",
		"room":     "pods may wait there (--cni=auto): 00-pod-pacemaker.conflist is a copy of 10-net.conflist with pacemaker-cni at the end",
		"cgroup":   "version 1; pod-pacemaker works with it",
		"kubelet":  "a container may wait 1m30s in the gate, and kubelet waits longer, according to ",
		"pressure": "the kernel reports it",
	} {
		f := level(t, report, check)
		assert.Equal(t, OK, f.Level, "%+v", f)
		assert.Contains(t, f.Says, says)
	}
	require.NoDirExists(t, dir+"/run", "preflight must change nothing")
}

func TestEachFaultIsFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		check string
		level Level
		says  string
		spoil func(dir string, o *Options)
	}{
		{"config", Warning, "a daemon with these flags holds no pod", func(_ string, o *Options) { o.ConfigFile = "" }},
		{"config", OK, `"two", in the mode Shadow, which holds no pod: 2 at a time`, func(_ string, o *Options) {
			write(t, 0o644, o.ConfigFile, "apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: two}\nspec: {mode: Shadow, throttleConfig: {maxConcurrent: {value: 2}}}\n")
		}},
		{"config", Warning, "they wait for themselves unless they are static or critical: default/agent", func(_ string, o *Options) {
			write(t, 0o644, o.ConfigFile, "apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: two}\nspec: {startAfter: [{daemonSet: default/agent}, {daemonSet: kube-system/agent}]}\n")
		}},
		{"nri", Fault, "/none: NRI is off, or its socket is elsewhere; containerd runs: process 8", func(dir string, o *Options) { o.NRISocket = dir + "/none" }},
		{"nri", Fault, "/none: NRI is off, or containerd does not run", func(dir string, o *Options) {
			o.NRISocket = dir + "/none"
			write(t, 0o644, dir+"/proc/8/comm", "crio\n")
		}},
		{"nri", Fault, "is not a socket", func(dir string, o *Options) { o.NRISocket = dir + "/config.yaml" }},
		{"runtime", Warning, "containerd 2.2.5 holds up statistics while a hook waits; 2.3.2 does not; containerd 2.2.5 keeps", func(dir string, _ *Options) {
			write(t, 0o755, dir+"/proc/8/exe", "#!/bin/sh\necho containerd x v2.2.5\n")
		}},
		{"runtime", Warning, "its version is unknown", func(dir string, _ *Options) { write(t, 0o644, dir+"/proc/8/comm", "crio\n") }},
		{"gate", Warning, "there is no", func(dir string, o *Options) { o.GatePath = dir + "/none/pacemaker-gate" }},
		{"gate", Warning, "--gate never", func(_ string, o *Options) { o.Gate = waiting.GateNever }},
		{"gate", Fault, "can be written by group or others", func(_ string, o *Options) { assert.NoError(t, os.Chmod(o.GatePath, 0o777)) }},
		{"gate", Fault, "cannot be executed", func(_ string, o *Options) { write(t, 0o755, o.GatePath, "\x7fELF") }},
		{"cni", Warning, "has no CNI configuration", func(dir string, o *Options) { o.CNIConfDir = dir + "/none" }},
		{"room", Warning, "off: --cni=off", func(_ string, o *Options) { o.CNI = cni.UseOff }},
		{"room", Warning, "not installed (--cni=auto): the daemon cannot write to", func(_ string, o *Options) { o.CNIBinDir = "/nowhere" }},
		{"room", Warning, "not installed (--cni=on): 10-net.conflist cannot be copied: its plugin ptp is not in /nowhere", func(_ string, o *Options) {
			o.CNI, o.CNIBinDir = cni.UseOn, "/nowhere"
		}},
		{"room", Fault, "no pod of this node starts: ", func(dir string, _ *Options) { write(t, 0o644, dir+"/cni/00-pod-pacemaker.conflist", "{}") }},
		{"room", Warning, "is there, and no daemon answers at ", func(dir string, _ *Options) {
			write(t, 0o644, dir+"/cni/00-pod-pacemaker.conflist", "{}")
			write(t, 0o755, dir+"/plugins/pacemaker-cni", "")
		}},
		{"kubelet", Fault, "kubelet gives up before that", func(_ string, o *Options) { o.GateTimeout = 2 * time.Minute }},
		{"kubelet", Warning, "was not found", func(dir string, _ *Options) { write(t, 0o644, dir+"/proc/7/comm", "other\n") }},
		{"kubelet", Warning, "cannot be read from here", func(dir string, _ *Options) { assert.NoError(t, os.Remove(dir+"/kubelet.yaml")) }},
		{"kubelet", Fault, "no such file", func(dir string, o *Options) { o.KubeletConfig = dir + "/none" }},
		{"cgroup", Warning, "no such file", func(dir string, o *Options) { o.CgroupRoot = dir + "/none" }},
		{"gate", OK, "can be executed, but is not used with this runtime", func(dir string, _ *Options) {
			write(t, 0o755, dir+"/proc/8/exe", "#!/bin/sh\necho containerd x v1.7.35\n")
		}},
		{"gate", OK, "may wait there for up to 1m30s", func(dir string, o *Options) {
			o.Gate = waiting.GateAlways
			write(t, 0o755, dir+"/proc/8/exe", "#!/bin/sh\necho containerd x v1.7.35\n")
		}},
		{"runtime", Warning, "containerd 2.3.2 keeps", func(dir string, _ *Options) {
			write(t, 0o755, dir+"/proc/8/exe", "#!/bin/sh\necho containerd x v2.3.2\n")
		}},
		{"pressure", Warning, "no pressure information", func(dir string, _ *Options) { assert.NoError(t, os.Remove(dir+"/proc/pressure/cpu")) }},
	} {
		dir, o := healthy(t)
		c.spoil(dir, &o)
		f := level(t, run(t, o), c.check)
		assert.Equal(t, c.level, f.Level, "%+v", f)
		assert.Contains(t, f.Says, c.says)
	}
}

// A host may have a containerd of another program, like Docker, beside kubelet's.
func TestTheContainerdThatWasAskedIsNamed(t *testing.T) {
	t.Parallel()
	dir, o := healthy(t)
	program := write(t, 0o755, dir+"/usr/containerd", "#!/bin/sh\necho containerd x v2.4.2\n")
	require.NoError(t, os.Remove(dir+"/proc/8/exe"))
	require.NoError(t, os.Symlink(program, dir+"/proc/8/exe"))
	assert.Equal(t, "containerd 2.4.2 has no known fault (asked process 8, "+program+")", level(t, run(t, o), "runtime").Says)
	process(t, dir+"/proc", 10, "containerd")
	assert.Equal(t, "containerd 2.4.2 has no known fault (asked process 8, "+program+"; of 2 with that name: 8, 10)", level(t, run(t, o), "runtime").Says)
	require.NoError(t, os.Remove(program))
	assert.Contains(t, level(t, run(t, o), "runtime").Says, "its version is unknown (asked process 8, ")
}

// The process of a pod can have any name, and preflight runs as root on the host.
func TestNoProcessOfAPodIsAsked(t *testing.T) {
	t.Parallel()
	for name, spoil := range map[string]func(process string){
		"in its mount namespace": func(process string) { inNamespace(t, process, 2) },
		"of another user": func(process string) {
			write(t, 0o644, process+"/status", "Name:\tx\nUid:\t1000\t0\t0\t0\n")
		},
		"of an unknown user":         func(process string) { assert.NoError(t, os.Remove(process+"/status")) },
		"in an unknown namespace":    func(process string) { assert.NoError(t, os.RemoveAll(process+"/ns")) },
		"while the host's is hidden": func(process string) { assert.NoError(t, os.RemoveAll(filepath.Dir(process)+"/1/ns")) },
		"while neither can be read": func(process string) {
			assert.NoError(t, os.RemoveAll(process+"/ns"))
			assert.NoError(t, os.RemoveAll(filepath.Dir(process)+"/1/ns"))
		},
	} {
		dir, o := healthy(t)
		spoil(dir + "/proc/7")
		spoil(dir + "/proc/8")
		write(t, 0o755, dir+"/proc/8/exe", "#!/bin/sh\ntouch "+dir+"/ran\n")
		report := run(t, o)
		assert.Equal(t, "its version is unknown: in the mount namespace of process 1, no containerd of root was seen", level(t, report, "runtime").Says, name)
		assert.Contains(t, level(t, report, "kubelet").Says, "was not found", name)
		require.NoFileExists(t, dir+"/ran", name)
	}
}

func TestTheFirstProcessIsTheOneWithTheLowestNumber(t *testing.T) {
	t.Parallel()
	dir, o := healthy(t)
	for _, pid := range []int{100, 9, 10, 99} {
		write(t, 0o755, process(t, dir+"/proc", pid, "containerd")+"/exe", "#!/bin/sh\necho containerd x v1.7.35\n")
	}
	assert.Equal(t, []string{"8", "9", "10", "99", "100"}, processesNamed(o.ProcRoot, "containerd"))
	assert.Contains(t, level(t, run(t, o), "runtime").Says, "containerd 2.4.2 has no known fault")
}

// A timeout that the daemon takes from kubelet's file is never too long.
func TestTheNamedKubeletConfigSetsTheTimeout(t *testing.T) {
	t.Parallel()
	dir, o := healthy(t)
	o.KubeletConfig, o.GateTimeout = dir+"/kubelet.yaml", time.Hour
	report := run(t, o)
	assert.Contains(t, level(t, report, "kubelet").Says, "a container may wait 1m36s")
	assert.Contains(t, level(t, report, "gate").Says, "a container may wait there for up to 1m36s")
	o.GateTimeoutSet = true
	assert.Equal(t, Fault, level(t, run(t, o), "kubelet").Level)
}

func TestAWrongConfigurationIsAnErrorAndNotAFinding(t *testing.T) {
	t.Parallel()
	dir, o := healthy(t)
	o.ConfigFile = write(t, 0o644, dir+"/wrong.yaml", "kind: Pod\n")
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "kind")
}

// kubelet's flags override its drop-ins, and these its file.
func TestKubeletsTimeoutMayBeAFlagOrInADropIn(t *testing.T) {
	t.Parallel()
	const flag, dropIns = "--runtime-request-timeout=15m", "--config-dir=/etc/kubelet.d"
	for _, c := range []struct {
		line  []string // after --config, which sets 2m; nil: no kubelet is seen
		gate  time.Duration
		named bool // --kubelet-config
		level Level
		says  string
	}{
		{[]string{flag}, 12 * time.Minute, false, OK, "a container may wait 12m0s in the gate, and kubelet waits longer, according to kubelet's flag --runtime-request-timeout"},
		{[]string{flag}, 12 * time.Minute, true, OK, "according to kubelet's flag"},
		{[]string{flag, dropIns}, 12 * time.Minute, true, OK, "according to kubelet's flag"},
		{[]string{"--runtime-request-timeout", "15m0s"}, 15 * time.Minute, true, Fault, "kubelet gives up before that, according to kubelet's flag"},
		{[]string{flag, "--runtime-request-timeout=1m"}, time.Minute, false, Fault, "kubelet gives up before that, according to kubelet's flag"},
		{[]string{"--runtime-request-timeout=1m"}, 0, true, Fault, "a container may wait 1m36s in the gate, and kubelet gives up before that"},
		{[]string{flag}, 0, true, OK, "a container may wait 1m36s in the gate, as kubelet's flag --runtime-request-timeout allows"},
		{[]string{dropIns}, 12 * time.Minute, true, Warning, "in the gate, which must be less than kubelet's runtimeRequestTimeout, 2m by default; its drop-ins in /etc/kubelet.d are not read"},
		{[]string{"--config-dir", "/etc/kubelet.d"}, 30 * time.Second, false, Warning, "its drop-ins in /etc/kubelet.d are not read"},
		{[]string{"--v=2"}, 12 * time.Minute, true, Fault, "kubelet gives up before that, according to /"},
		{nil, 12 * time.Minute, true, Warning, "flags and drop-ins of kubelet are not seen from here"},
		{nil, time.Minute, true, OK, "a container may wait 1m0s in the gate, and kubelet waits longer, according to /"},
	} {
		dir, o := healthy(t)
		file := dir + "/kubelet.yaml"
		write(t, 0o644, dir+"/proc/7/cmdline", strings.Join(append([]string{"kubelet", "--config", file}, c.line...), "\x00")+"\x00")
		if c.line == nil {
			require.NoError(t, os.RemoveAll(dir+"/proc/7/ns")) // as in a pod
		}
		if c.named {
			o.KubeletConfig = file
		}
		o.GateTimeout, o.GateTimeoutSet = c.gate, c.gate > 0
		f := level(t, run(t, o), "kubelet")
		assert.Equal(t, c.level, f.Level, "%+v: %+v", c, f)
		assert.Contains(t, f.Says, c.says)
	}
}

func TestKubeletsCommandLineMayHaveTheFileAsAWordOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	process(t, dir, 1, "systemd")
	process(t, dir, 7, "kubelet")
	write(t, 0o644, dir+"/7/cmdline", strings.Join([]string{"kubelet", "--config", "/x/y.yaml", "--v=1"}, "\x00"))
	assert.Equal(t, "/x/y.yaml", flagOf(kubeletLine(dir), "--config"))
	assert.Empty(t, flagOf([]string{"kubelet", "--config"}, "--config"))
}
