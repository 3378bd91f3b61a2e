package lab

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/yaml"
)

// kubeletHealthPort is the port of the kubelet's health endpoint, inside the run's network.
const kubeletHealthPort = "10248"

// systemBusVariable tells the D-Bus library the address of the system bus.
const systemBusVariable = "DBUS_SYSTEM_BUS_ADDRESS"

// startKubelet starts the node's kubelet and checks that its cAdvisor sees containerd.
func (c *Cluster) startKubelet(ctx context.Context, o ClusterOptions) error {
	root := filepath.Join(c.Dir, "kubelet")
	for _, dir := range []string{root, c.StaticPodDir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	// cAdvisor looks for containerd at its usual path, which belongs to the run alone (keeper/mounts.go).
	usual := filepath.Join(c.Dir, "host/run/containerd")
	if err := os.MkdirAll(usual, 0o711); err != nil {
		return err
	}
	if err := os.Symlink(c.Socket, filepath.Join(usual, "containerd.sock")); err != nil {
		return err
	}
	config, err := c.writeKubeletConfig(root, o.KubeletConfig)
	if err != nil {
		return err
	}
	access, err := c.creds.kubeconfig("kubelet", kubeletUser(c.NodeName), NodeIP+":"+apiPort)
	if err != nil {
		return err
	}
	args := []string{
		c.binaries.Kubelet, "--config", config, "--kubeconfig", access, "--hostname-override", c.NodeName, "--node-ip", NodeIP,
		"--root-dir", root, "--cert-dir", filepath.Join(root, "pki"), "--v", "2",
	}
	if len(o.NodeLabels) > 0 {
		args = append(args, "--node-labels", labels(o.NodeLabels))
	}
	health, err := c.keeper.Forward(ctx, "127.0.0.1:"+kubeletHealthPort)
	if err != nil {
		return err
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	c.Kubelet = newService(c.keeper, ServiceSpec{
		Name: "kubelet", Args: args,
		// On the host's bus, a kubelet with graceful shutdown would delay the host's shutdown. No program listens here.
		Env:   []string{systemBusVariable + "=unix:path=" + filepath.Join(c.Dir, "system-bus.sock")},
		Ready: func(ctx context.Context) error { return httpOK(ctx, client, "http://"+health+"/healthz") },
	})
	if err := c.Kubelet.Start(ctx); err != nil {
		return err
	}
	return c.Kubelet.await(ctx, "cAdvisor", c.cadvisorSeesContainerd)
}

func labels(all map[string]string) string {
	var pairs []string
	for _, key := range slices.Sorted(maps.Keys(all)) {
		pairs = append(pairs, key+"="+all[key])
	}
	return strings.Join(pairs, ",")
}

// RestartKubelet restarts the kubelet with its original configuration, which change may edit last,
// and waits until the node is ready and without taints.
func (c *Cluster) RestartKubelet(ctx context.Context, change func(config map[string]any)) error {
	if err := c.Kubelet.Stop(ctx); err != nil {
		return err
	}
	_, err := c.writeKubeletConfig(filepath.Dir(c.KubeletConfigFile()), c.kubeletConfig, change)
	if err != nil {
		return err
	}
	if err := c.Kubelet.Start(ctx); err != nil {
		return err
	}
	return c.AwaitReady(ctx)
}

// writeKubeletConfig writes the kubelet's configuration: kubelet's defaults, with the settings that
// keep it within the run's folder, cgroup and network, and with the changes. A later change
// wins. Changes may be nil.
func (c *Cluster) writeKubeletConfig(root string, changes ...func(config map[string]any)) (string, error) {
	resolv := filepath.Join(root, "resolv.conf")
	if err := os.WriteFile(resolv, nil, 0o644); err != nil {
		return "", err
	}
	config := map[string]any{
		"apiVersion":               "kubelet.config.k8s.io/v1beta1",
		"kind":                     "KubeletConfiguration",
		"containerRuntimeEndpoint": "unix://" + c.Socket,
		"staticPodPath":            c.StaticPodDir,
		"podLogsDir":               filepath.Join(c.Dir, "pod-logs"),
		"volumePluginDir":          filepath.Join(root, "volume-plugins"),
		"resolvConf":               resolv,
		"cgroupDriver":             "cgroupfs",
		"cgroupRoot":               c.Cgroup,
		"enforceNodeAllocatable":   []string{"none"},
		"failCgroupV1":             false,
		"failSwapOn":               false,
		"oomScoreAdj":              0,
		"makeIPTablesUtilChains":   false,
		"authentication":           map[string]any{"anonymous": map[string]any{"enabled": true}, "webhook": map[string]any{"enabled": false}},
		"authorization":            map[string]any{"mode": "AlwaysAllow"},
		"maxPods":                  250,
		// The disk is the machine's. Other data on it must not cause evictions.
		"evictionHard":                map[string]string{"memory.available": "50Mi", "nodefs.available": "0%", "imagefs.available": "0%", "nodefs.inodesFree": "0%", "imagefs.inodesFree": "0%"},
		"imageGCHighThresholdPercent": 100,
		"imageGCLowThresholdPercent":  99,
	}
	for _, change := range changes {
		if change != nil {
			change(config)
		}
	}
	data, err := yaml.Marshal(config)
	if err != nil {
		return "", err
	}
	path := filepath.Join(root, "config.yaml")
	return path, os.WriteFile(path, data, 0o600)
}

// KubeletConfigFile returns the path of the kubelet's configuration.
func (c *Cluster) KubeletConfigFile() string { return filepath.Join(c.Dir, "kubelet", "config.yaml") }

// end stops a service that did not get ready.
func (s *Service) end(ctx context.Context) error {
	if !s.Running() {
		return nil
	}
	if err := s.Stop(context.WithoutCancel(ctx)); err != nil {
		return fmt.Errorf("ending %s: %w", s.spec.Name, err)
	}
	return nil
}
