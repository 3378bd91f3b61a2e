package plugin

import (
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// kubeletDefaultTimeout is kubelet's runtimeRequestTimeout if its configuration does not set one.
const kubeletDefaultTimeout = 2 * time.Minute

// GateTimeoutOf reads kubelet's configuration file and returns how long a container may wait in the gate: 0.8 of
// runtimeRequestTimeout, at most an hour.
func GateTimeoutOf(kubeletConfig string) (time.Duration, error) {
	data, err := os.ReadFile(kubeletConfig)
	if err != nil {
		return 0, fmt.Errorf("kubelet configuration: %w", err)
	}
	var c struct {
		Kind                  string          `json:"kind"`
		RuntimeRequestTimeout metav1.Duration `json:"runtimeRequestTimeout"`
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		return 0, fmt.Errorf("kubelet configuration %s: %w", kubeletConfig, err)
	}
	if c.Kind != "KubeletConfiguration" {
		return 0, fmt.Errorf("kubelet configuration %s: kind: %q: must be KubeletConfiguration", kubeletConfig, c.Kind)
	}
	timeout := c.RuntimeRequestTimeout.Duration
	if timeout <= 0 {
		timeout = kubeletDefaultTimeout
	}
	return min(time.Duration(KubeletTimeoutShare*float64(timeout)), maxGateTimeout), nil
}
