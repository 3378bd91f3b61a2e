package runtimetest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// makeBundle makes the bundle of a sandbox or container, with a config.json that is padded to the size of its environment.
func (p *Pod) makeBundle(id, kind string, environment int) error {
	if p.runtime.opts.Bundles == "" {
		return nil
	}
	const prefix = "io.kubernetes.cri."
	config, err := json.Marshal(map[string]any{"annotations": map[string]string{
		prefix + "sandbox-namespace": p.spec.Namespace, prefix + "sandbox-name": p.spec.Name, prefix + "sandbox-uid": p.spec.UID, prefix + "container-type": kind,
	}})
	if err == nil {
		err = os.MkdirAll(p.runtime.bundle(id), 0o700)
	}
	if err == nil {
		config = append(config, bytes.Repeat([]byte{' '}, environment)...)
		err = os.WriteFile(filepath.Join(p.runtime.bundle(id), "config.json"), config, 0o600)
	}
	if err != nil {
		return fmt.Errorf("make the bundle: %w", err)
	}
	return nil
}

func (r *Runtime) bundle(id string) string { return filepath.Join(r.opts.Bundles, id) }

// removeBundle removes a bundle, if there is one.
func (r *Runtime) removeBundle(id string) {
	if r.opts.Bundles == "" {
		return
	}
	if err := os.RemoveAll(r.bundle(id)); err != nil {
		r.log.WithError(err).Error("Cannot remove a bundle")
	}
}

func sizeOf(environment []string) (n int) {
	for _, one := range environment {
		n += len(one)
	}
	return n
}
