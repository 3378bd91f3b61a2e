// Command generate writes what is made from the types in crd/v1alpha1: their
// deepcopy functions, and the custom resource definition in deploy/crds. With
// -check it writes nothing, and fails if a file is not what it would write. It
// needs the Go module proxy the first time.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// controllerGen is built for the release of k8s.io/* in go.mod.
const controllerGen = "sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0"

// What is generated, relative to the root of the module.
const (
	codeDir = "crd/v1alpha1"
	crdDir  = "deploy/crds"
	// The chart has them as well, as files: not every tool that packs a chart follows links.
	chartDir = "deploy/chart/pod-pacemaker/files/crds"
	code     = codeDir + "/zz_generated.deepcopy.go"
	// A CRD's file is named by controller-gen: group_plural.yaml.
	crds = "/*_*.yaml"
)

func main() {
	check := flag.Bool("check", false, "write nothing, fail if a file is not current")
	root := flag.String("root", ".", "the root of the module")
	flag.Parse()
	if err := run(context.Background(), *root, *check); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, root string, check bool) (err error) {
	root, err = filepath.Abs(root)
	if err != nil || !check {
		return errors.Join(err, generate(ctx, root, root))
	}
	fresh, err := os.MkdirTemp("", "generate-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(fresh)) }()
	if err := generate(ctx, root, fresh); err != nil {
		return err
	}
	return compare(root, fresh)
}

// generate writes the files of the module at root below the folder out.
func generate(ctx context.Context, root, out string) error {
	for _, dir := range []string{codeDir, crdDir, chartDir} {
		if err := os.MkdirAll(filepath.Join(out, dir), 0o750); err != nil {
			return err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "run", controllerGen, //nolint:gosec // no input but the developer's own folder
		"object", "crd", "paths=./"+codeDir,
		"output:object:dir="+filepath.Join(out, codeDir), "output:crd:dir="+filepath.Join(out, crdDir))
	cmd.Dir, cmd.Stdout, cmd.Stderr = root, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("controller-gen: %w", err)
	}
	files, err := filepath.Glob(filepath.Join(out, crdDir) + crds)
	if err != nil {
		return err
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(out, chartDir, filepath.Base(file)), text, 0o644); err != nil { //nolint:gosec // a file of the repository
			return err
		}
	}
	return nil
}

// compare names every file that is generated and differs between two folders,
// or is in one of them only.
func compare(root, fresh string) error {
	names := map[string]bool{code: true}
	for _, in := range []string{root, fresh} {
		for _, dir := range []string{crdDir, chartDir} {
			files, err := filepath.Glob(filepath.Join(in, dir) + crds)
			if err != nil {
				return err
			}
			for _, file := range files {
				names[filepath.Join(dir, filepath.Base(file))] = true
			}
		}
	}
	var stale []error
	for name := range names {
		have, err := os.ReadFile(filepath.Join(root, name))
		want, err2 := os.ReadFile(filepath.Join(fresh, name))
		if err != nil || err2 != nil || !bytes.Equal(have, want) {
			stale = append(stale, fmt.Errorf("%s is not current: run 'go generate ./crd' and commit the result", name))
		}
	}
	return errors.Join(stale...)
}
