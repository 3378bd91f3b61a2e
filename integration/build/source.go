package build

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/mod/modfile"
)

// source is a module's unpacked, unchanged code in the Go module cache, with a self-contained
// go.mod beside it.
type source struct {
	// dir is the read-only folder of the code.
	dir string
	// modfile is the go.mod to build with (go build -modfile).
	modfile string
}

// fetch downloads a component's module, compares its checksum, and writes its go.mod and go.sum
// into the folder work.
func fetch(ctx context.Context, c Component, work string) (source, error) {
	var got struct{ Dir, Sum, Error string }
	cmd := exec.CommandContext(ctx, "go", "mod", "download", "-json", c.Module+"@"+c.Version)
	cmd.Dir, cmd.Env = work, goEnv(false)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if jsonErr := json.Unmarshal(out, &got); jsonErr != nil || got.Error != "" || err != nil {
		return source{}, fmt.Errorf("downloading %s@%s: %s%s", c.Module, c.Version, got.Error, stderr.String())
	}
	if got.Sum != c.Sum {
		return source{}, fmt.Errorf("%s@%s has checksum %s, versions.txt wants %s", c.Module, c.Version, got.Sum, c.Sum)
	}
	s := source{dir: got.Dir, modfile: filepath.Join(work, "go.mod")}
	mod, err := os.ReadFile(filepath.Join(got.Dir, "go.mod"))
	if err != nil {
		return source{}, err
	}
	if mod, err = standalone(mod, c.Version, c.With); err != nil {
		return source{}, fmt.Errorf("go.mod of %s: %w", c.Module, err)
	}
	sum, err := os.ReadFile(filepath.Join(got.Dir, "go.sum"))
	if err != nil {
		return source{}, err
	}
	if err := os.WriteFile(s.modfile, mod, 0o644); err != nil {
		return source{}, err
	}
	return s, os.WriteFile(filepath.Join(work, "go.sum"), sum, 0o644)
}

// edited copies code to the new folder dir, because the module cache is read-only, and changes the
// copy.
func edited(original, dir string, edits []edit) (string, error) {
	if err := os.CopyFS(dir, os.DirFS(original)); err != nil {
		return "", fmt.Errorf("copying the code: %w", err)
	}
	for _, e := range edits {
		path := filepath.Join(dir, filepath.FromSlash(e.file))
		code, err := os.ReadFile(path)
		if err != nil {
			return "", fmt.Errorf("changing the code: %w", err)
		}
		if n := bytes.Count(code, []byte(e.old)); n != 1 {
			return "", fmt.Errorf("changing the code: %s has %q %d times, not once", e.file, e.old, n)
		}
		code = bytes.Replace(code, []byte(e.old), []byte(e.new), 1)
		if err := os.WriteFile(path, code, 0o644); err != nil {
			return "", fmt.Errorf("changing the code: %w", err)
		}
	}
	return dir, nil
}

// standalone rewrites a go.mod that refers to its own repository to refer to the published modules,
// because a downloaded module does not have the repository around it.
//
// Kubernetes requires its staging repositories as v0.0.0 and publishes them under its own version
// with 0 for 1: v1.36.3 goes with k8s.io/api v0.36.3. Others (etcd) already name the published
// version. newer are modules to require instead of older versions, each as path@version.
func standalone(mod []byte, version string, newer []string) ([]byte, error) {
	f, err := modfile.Parse("go.mod", mod, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range append([]*modfile.Replace(nil), f.Replace...) {
		if !modfile.IsDirectoryPath(r.New.Path) {
			continue
		}
		if err := f.DropReplace(r.Old.Path, r.Old.Version); err != nil {
			return nil, err
		}
	}
	staging := "v0." + strings.TrimPrefix(version, "v1.")
	for _, r := range append([]*modfile.Require(nil), f.Require...) {
		if r.Mod.Version != "v0.0.0" {
			continue
		}
		if err := f.AddRequire(r.Mod.Path, staging); err != nil {
			return nil, err
		}
	}
	for _, n := range newer {
		path, at, _ := strings.Cut(n, "@")
		if err := f.AddRequire(path, at); err != nil {
			return nil, err
		}
	}
	f.Cleanup()
	return f.Format()
}

// goEnv returns the environment of the go command: the caller's, without variables that would
// change which code is built.
func goEnv(cgo bool) []string {
	enabled := "CGO_ENABLED=0"
	if cgo {
		enabled = "CGO_ENABLED=1"
	}
	return append(os.Environ(), "GOWORK=off", "GOOS=linux", enabled)
}
