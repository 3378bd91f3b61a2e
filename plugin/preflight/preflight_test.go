package preflight

import (
	"net"
	"os"
	"path/filepath"
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
	write(t, 0o644, dir+"/proc/1/io", "rchar: 1\nwchar: 1\nsyscr: 1\nsyscw: 1\nread_bytes: 1\nwrite_bytes: 1\ncancelled_write_bytes: 0\n")
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
		KubeletConfig:  write(t, 0o644, dir+"/kubelet.yaml", "kind: KubeletConfiguration\nruntimeRequestTimeout: 2m\n"),
		GateTimeoutSet: true,
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
		"gate":     "can be executed, and a container may wait there for up to 1m30s",
		"cni":      "10-net.conflist",
		"room":     "nothing speaks against it (--cni=auto): the daemon makes 00-pod-pacemaker.conflist from 10-net.conflist, with pacemaker-cni at the end",
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
		{"config", OK, `"two", in the mode Disabled, which holds no pod`, func(_ string, o *Options) {
			write(t, 0o644, o.ConfigFile, "apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: two}\nspec: {mode: Disabled}\n")
		}},
		{"config", Warning, "no node with work to do has cpu below 1%: limits", func(_ string, o *Options) {
			write(t, 0o644, o.ConfigFile, "apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: two}\nspec: {throttleConfig: {cpu: {maxLoad: 1}}}\n")
		}},
		{"containerd", Fault, "has no container, not even the daemon's", func(dir string, o *Options) {
			o.ContainerdState, o.OfThePod = dir+"/state", true
			assert.NoError(t, os.MkdirAll(o.Bundles(), 0o755))
		}},
		{"file", Warning, `/config.yaml: PacemakerConfig "two" has nodeSelector, without effect`, func(_ string, o *Options) {
			write(t, 0o644, o.ConfigFile, "apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: two}\nspec: {nodeSelector: {canary: 'true'}}\n")
		}},
		{"nri", Fault, "/none: NRI is off, its socket is elsewhere, or containerd does not run", func(dir string, o *Options) { o.NRISocket = dir + "/none" }},
		{"nri", Fault, "is not a socket", func(dir string, o *Options) { o.NRISocket = dir + "/config.yaml" }},
		{"runtime", Warning, "its version is unknown", func(string, *Options) {}},
		{"gate", Warning, "there is no", func(dir string, o *Options) { o.GatePath = dir + "/none/pacemaker-gate" }},
		{"gate", Warning, "--gate never", func(_ string, o *Options) { o.Gate = waiting.GateNever }},
		{"gate", Fault, "can be written by group or others", func(_ string, o *Options) { assert.NoError(t, os.Chmod(o.GatePath, 0o777)) }},
		{"gate", Fault, "cannot be executed", func(_ string, o *Options) { write(t, 0o755, o.GatePath, "\x7fELF") }},
		{"cni", Warning, "has no CNI configuration", func(dir string, o *Options) { o.CNIConfDir = dir + "/none" }},
		{"room", Warning, "off: a node has one waiting room", func(dir string, o *Options) {
			o.Instance = "second"
			write(t, 0o644, dir+"/cni/00-pod-pacemaker.conflist", "{}") // of the other daemon
		}},
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
		{"kubelet", Warning, "kubelet gives up before that", func(_ string, o *Options) { o.GateTimeout = 2 * time.Minute }},
		{"kubelet", Warning, "must be less than kubelet's runtimeRequestTimeout, 2m by default", func(_ string, o *Options) { o.KubeletConfig = "" }},
		{"kubelet", Fault, "no such file", func(dir string, o *Options) { o.KubeletConfig = dir + "/none" }},
		{"cgroup", Warning, "no such file", func(dir string, o *Options) { o.CgroupRoot = dir + "/none" }},
		{"cgroup", Warning, "the daemon cannot read that of processes: ", func(dir string, _ *Options) { assert.NoError(t, os.Remove(dir+"/proc/1/io")) }},
		{"cgroup", OK, "version 1", func(dir string, o *Options) { // the kernel counts
			o.ProcRoot = dir + "/none"
			write(t, 0o644, dir+"/blkio/blkio.throttle.io_service_bytes_recursive", "8:0 Read 1\n8:0 Write 1\nTotal 2\n")
		}},
		{"pressure", Warning, "no pressure information", func(dir string, _ *Options) { assert.NoError(t, os.Remove(dir+"/proc/pressure/cpu")) }},
	} {
		dir, o := healthy(t)
		c.spoil(dir, &o)
		f := level(t, run(t, o), c.check)
		assert.Equal(t, c.level, f.Level, "%+v", f)
		assert.Contains(t, f.Says, c.says)
		assert.NotContains(t, f.Says, "holds no pod: none", "once is enough")
	}
}

// A timeout that the daemon takes from kubelet's file is never too long.
func TestTheNamedKubeletConfigSetsTheTimeout(t *testing.T) {
	t.Parallel()
	_, o := healthy(t)
	o.GateTimeout, o.GateTimeoutSet = time.Hour, false
	report := run(t, o)
	assert.Contains(t, level(t, report, "kubelet").Says, "a container may wait 1m36s")
	assert.Contains(t, level(t, report, "gate").Says, "a container may wait there for up to 1m36s")
	o.GateTimeoutSet = true
	assert.Equal(t, Warning, level(t, run(t, o), "kubelet").Level)
}

func TestAWrongConfigurationIsAnErrorAndNotAFinding(t *testing.T) {
	t.Parallel()
	dir, o := healthy(t)
	o.ConfigFile = write(t, 0o644, dir+"/wrong.yaml", "kind: Pod\n")
	_, err := Run(t.Context(), o)
	require.ErrorContains(t, err, "kind")
}
