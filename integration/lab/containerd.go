package lab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"text/template"
)

// podSubnet has the addresses of the pods, inside the run's network.
const podSubnet = "10.213.128.0/17"

// containerdConfig is in version 2 of containerd's format, which 1.7 reads and every 2.x converts.
var containerdConfig = template.Must(template.New("containerd").Parse(`version = 2
root = "{{.Dir}}/containerd/root"
state = "{{.Dir}}/containerd/state"
temp = "{{.Dir}}/containerd/temp"
oom_score = 0

[grpc]
  address = "{{.Socket}}"

[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{{.PauseImage}}"
  disable_tcp_service = true
  disable_apparmor = true
  restrict_oom_score_adj = {{.RestrictOOM}}
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{{.Dir}}/cni-bin"
    conf_dir = "{{.Dir}}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "{{.Snapshotter}}"
    default_runtime_name = "runc"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        BinaryName = "{{.Runc}}"
        SystemdCgroup = false

[plugins."io.containerd.nri.v1.nri"]
  disable = false
  socket_path = "{{.NRISocket}}"
  plugin_path = "{{.Dir}}/nri/plugins"
  plugin_config_path = "{{.Dir}}/nri/conf.d"

[plugins."io.containerd.internal.v1.opt"]
  path = "{{.Dir}}/containerd/opt"
{{.Extra}}`))

// cniConfig connects each pod to the node by a veth pair, without iptables.
const cniConfig = `{
  "cniVersion": "1.0.0",
  "name": "lab",
  "plugins": [{
    "type": "ptp",
    "ipMasq": false,
    "ipam": {
      "type": "host-local",
      "ranges": [[{"subnet": "` + podSubnet + `"}]],
      "routes": [{"dst": "0.0.0.0/0"}]
    }
  }]
}
`

// writeRuntimeConfig writes the configuration of containerd and of the pods' network, and returns
// the path of containerd's.
func writeRuntimeConfig(r *Runtime, b Binaries, extra string) (string, error) {
	snapshotter, err := pickSnapshotter(r.Dir)
	if err != nil {
		return "", err
	}
	mayLower, err := mayLowerOOMScore()
	if err != nil {
		return "", err
	}
	var config bytes.Buffer
	err = containerdConfig.Execute(&config, map[string]any{
		"Dir": r.Dir, "Socket": r.Socket, "NRISocket": r.NRISocket,
		"PauseImage": PauseImage, "Runc": b.Runc,
		"RestrictOOM": !mayLower, "Snapshotter": snapshotter, "Extra": extra,
	})
	if err != nil {
		return "", fmt.Errorf("writing containerd's configuration: %w", err)
	}
	// The run has its own folder of plugins, because a scenario may install one more.
	if err := linkAll(b.CNIDir, filepath.Join(r.Dir, "cni-bin")); err != nil {
		return "", err
	}
	path := filepath.Join(r.Dir, "containerd", "config.toml")
	cni := filepath.Join(r.Dir, "cni", "10-lab.conflist")
	for file, content := range map[string][]byte{path: config.Bytes(), cni: []byte(cniConfig)} {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return "", err
		}
		if err := os.WriteFile(file, content, 0o644); err != nil {
			return "", err
		}
	}
	return path, nil
}

// linkAll creates a folder of links to everything in another folder.
func linkAll(from, to string) error {
	entries, err := os.ReadDir(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(to, 0o755); err != nil {
		return err
	}
	for _, e := range entries {
		if err := os.Symlink(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return nil
}
