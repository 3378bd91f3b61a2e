package plugin

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/cni"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/internal/waiting"
)

// goodOptions returns valid options.
func goodOptions() Options {
	return Options{
		NodeName: "node", InCluster: true, NRISocket: "/run/nri.sock", NRIIndex: "05", RunDir: "/run/pod-pacemaker",
		GatePath: "/opt/pacemaker-gate", GateTimeout: 100 * time.Second, Hold: 200 * time.Millisecond,
		Gate: waiting.GateAuto, CNI: cni.UseAuto, CNIConfDir: "/net.d", CNIBinDir: "/plugins", RefuseAt: waiting.RefuseAuto, ProcRoot: "/proc", CgroupRoot: "/sys/fs/cgroup",
	}
}

func TestValidOptions(t *testing.T) {
	t.Parallel()
	for why, change := range map[string]func(*Options){
		"as they are":                   func(*Options) {},
		"standalone needs no node name": func(o *Options) { o.InCluster, o.NodeName = false, "" },
		"no gate":                       func(o *Options) { o.GatePath = "" },
		"no hold":                       func(o *Options) { o.Hold = 0 },
		"the longest hold":              func(o *Options) { o.Hold = maxHold },
		"the shortest gate timeout":     func(o *Options) { o.GateTimeout = time.Second },
		"the longest gate timeout":      func(o *Options) { o.GateTimeout = time.Hour },
		"a room":                        func(o *Options) { o.CNI = cni.UseOn },
		"no room":                       func(o *Options) { o.CNI, o.CNIConfDir = cni.UseOff, "net.d" },
		"no folder for a room":          func(o *Options) { o.CNIConfDir, o.CNIBinDir = "", "" },
		"another instance":              func(o *Options) { o.Instance = "blue" },
	} {
		o := goodOptions()
		change(&o)
		assert.NoError(t, o.Validate(), why)
	}
}

func TestInvalidOptionsNameTheFlag(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flag   string
		change func(*Options)
	}{
		{"--node-name", func(o *Options) { o.NodeName = "" }},
		{"--nri-index", func(o *Options) { o.NRIIndex = "5" }},
		{"--nri-index", func(o *Options) { o.NRIIndex = "005" }},
		{"--nri-index", func(o *Options) { o.NRIIndex = "" }},
		{"--run-dir", func(o *Options) { o.RunDir = "run" }},
		{"--run-dir", func(o *Options) { o.RunDir = "/" }},
		{"--run-dir", func(o *Options) { o.RunDir = "/run/" }},
		{"--run-dir", func(o *Options) { o.RunDir = "/run/../var//lib" }},
		{"--run-dir", func(o *Options) { o.RunDir = "/etc/kubernetes/manifests" }},
		{"--nri-socket", func(o *Options) { o.NRISocket = "nri.sock" }},
		{"--run-dir", func(o *Options) { o.RunDir = "/run/" + strings.Repeat("d", 100) }},
		{"--gate-path", func(o *Options) { o.GatePath = "pacemaker-gate" }},
		{"--gate-timeout", func(o *Options) { o.GateTimeout = time.Second - 1 }},
		{"--gate-timeout", func(o *Options) { o.GateTimeout = time.Hour + 1 }},
		{"--hold", func(o *Options) { o.Hold = -1 }},
		{"--hold", func(o *Options) { o.Hold = maxHold + 1 }},
		{"--gate", func(o *Options) { o.Gate = "sometimes" }},
		{"--gate", func(o *Options) { o.Gate = "" }},
		{"--cni", func(o *Options) { o.CNI = "" }},
		{"--cni", func(o *Options) { o.CNI = "true" }},
		{"--cni", func(o *Options) { o.CNI, o.Instance = cni.UseOn, "second" }},
		{"--cni-conf-dir", func(o *Options) { o.CNIConfDir = "net.d" }},
		{"--cni-conf-dir", func(o *Options) { o.CNI, o.CNIConfDir = cni.UseOn, "" }},
		{"--cni-bin-dir", func(o *Options) { o.CNI, o.CNIBinDir = cni.UseOn, "bin" }},
		{"--refuse-at", func(o *Options) { o.RefuseAt = "image" }},
	} {
		o := goodOptions()
		c.change(&o)
		err := o.Validate()
		require.Error(t, err, c.flag)
		faults := err.Error()
		assert.True(t, strings.HasPrefix(faults, c.flag+": "), faults)
		_, err = New(o)
		require.EqualError(t, err, "invalid options: "+faults)
	}
}

func TestEveryFaultOfTheOptionsIsNamedAtOnce(t *testing.T) {
	t.Parallel()
	o := goodOptions()
	o.NodeName, o.NRIIndex, o.Hold = "", "x", time.Minute
	err := o.Validate()
	for _, flag := range []string{"--node-name", "--nri-index", "--hold"} {
		assert.ErrorContains(t, err, flag)
	}
}

// Daemons of different instances on one node share neither a PacemakerNode nor Leases.
func TestAnInstanceHasNamesOfItsOwn(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "node-1", Options{NodeName: "node-1"}.nameOnNode())
	canary := Options{NodeName: "node-1", Instance: "canary"}
	assert.Equal(t, "node-1.canary", canary.nameOnNode())
	assert.Equal(t, "pod-pacemaker-canary", canary.pluginName())
}
