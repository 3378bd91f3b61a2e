// Command runc stands before runc where that was built without libseccomp, a C
// library that no Go module brings. Such a runc refuses a container with a
// seccomp profile, and the kubelet gives one to every sandbox. This program takes
// the profile out of the bundle and becomes the runc that lies beside it as
// runc.real: the process is the same, and so is its parent.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "runc:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if bundle := bundleOf(args[1:]); bundle != "" {
		if err := dropSeccomp(filepath.Join(bundle, "config.json")); err != nil {
			return err
		}
	}
	real := filepath.Join(filepath.Dir(args[0]), "runc.real")
	return syscall.Exec(real, args, os.Environ())
}

// bundleOf is the bundle of a command that makes a container; empty otherwise.
func bundleOf(args []string) string {
	for i, arg := range args {
		if value, ok := strings.CutPrefix(arg, "--bundle="); ok {
			return value
		}
		if (arg == "--bundle" || arg == "-b") && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// dropSeccomp rewrites a bundle's configuration without a seccomp profile.
func dropSeccomp(path string) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var config, linux map[string]json.RawMessage
	if err := json.Unmarshal(data, &config); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := json.Unmarshal(config["linux"], &linux); err != nil {
		return fmt.Errorf("%s: linux: %w", path, err)
	}
	if _, ok := linux["seccomp"]; !ok {
		return nil
	}
	delete(linux, "seccomp")
	if config["linux"], err = json.Marshal(linux); err != nil {
		return err
	}
	if data, err = json.Marshal(config); err != nil {
		return err
	}
	return os.WriteFile(path, data, 0o600)
}
