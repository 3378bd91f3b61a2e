package cni

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A copy of any configuration has the plugins of that and pacemaker-cni at the end, or it is refused.
func FuzzConflist(f *testing.F) {
	f.Add("10-net.conflist", []byte(lab))
	f.Add("10-net.conf", []byte(`{"cniVersion":"0.4.0","name":"net","type":"ptp"}`))
	f.Add("10-net.conflist", []byte(`{"cniVersion":"1.0.0","name":"net","plugins":[{"type":"../../ptp"},null]}`))
	f.Add("10-net.conflist", []byte(`{"cniVersion":"1.0.0","name":"net","Plugins":[{"Type":"ptp"}],"plugins":null}`))
	o := Options{ConfDir: "/etc/cni", BinDir: f.TempDir(), Socket: "/run/gate.sock"}
	require.NoError(f, os.WriteFile(filepath.Join(o.BinDir, "ptp"), nil, 0o600))
	f.Fuzz(func(t *testing.T, name string, text []byte) {
		made, err := o.conflist(name, text)
		if err != nil {
			return
		}
		var plugins []struct{ Type, Socket string }
		var fields map[string]json.RawMessage
		require.NoError(t, json.Unmarshal(made, &fields))
		require.NoError(t, json.Unmarshal(fields["plugins"], &plugins))
		require.Greater(t, len(plugins), 1)
		for i, plugin := range plugins {
			require.Equal(t, i == len(plugins)-1, plugin.Type == ProgramName)
		}
		require.Equal(t, o.Socket, plugins[len(plugins)-1].Socket)
	})
}
