// Package kubelet reads from kubelet's configuration how long a container may wait in the gate.
package kubelet

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

// defaultTimeout is kubelet's runtimeRequestTimeout if its configuration does not set one.
const defaultTimeout = 2 * time.Minute

// maxConfig is the largest file that is read, in bytes.
const maxConfig = 1 << 20

const (
	// TimeoutShare is the share of kubelet's runtimeRequestTimeout for which a container may wait in the gate.
	TimeoutShare = 0.8
	// MostGateTimeout is the longest wait in the gate.
	MostGateTimeout = time.Hour
)

// GateTimeoutOf reads kubelet's configuration file and returns how long a container may wait in the gate: [TimeoutShare] of
// runtimeRequestTimeout, at most an hour. The file must be a regular one of at most 1 MiB, so that the call does not block.
func GateTimeoutOf(config string) (time.Duration, error) {
	data, err := readRegular(config, maxConfig)
	if err != nil {
		return 0, fmt.Errorf("kubelet configuration: %w", err)
	}
	var c struct {
		Kind                  string          `json:"kind"`
		RuntimeRequestTimeout metav1.Duration `json:"runtimeRequestTimeout"`
	}
	if err := yaml.Unmarshal(data, &c); err != nil {
		return 0, fmt.Errorf("kubelet configuration %s: %w", config, err)
	}
	if c.Kind != "KubeletConfiguration" {
		return 0, fmt.Errorf("kubelet configuration %s: kind: %q: must be KubeletConfiguration", config, c.Kind)
	}
	timeout := c.RuntimeRequestTimeout.Duration
	if timeout <= 0 {
		timeout = defaultTimeout
	}
	return GateTimeout(timeout), nil
}

// GateTimeout returns how long a container may wait in the gate if this is kubelet's runtimeRequestTimeout.
func GateTimeout(kubelet time.Duration) time.Duration {
	return min(time.Duration(TimeoutShare*float64(kubelet)), MostGateTimeout)
}

// readRegular reads a regular file of at most most bytes.
func readRegular(path string, most int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0) // the open of a pipe would wait for a writer
	if err != nil {
		return nil, err
	}
	defer f.Close()
	switch info, err := f.Stat(); {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	data, err := io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(data)) > most {
		return nil, fmt.Errorf("%s is larger than %d bytes", path, most)
	}
	return data, err
}
