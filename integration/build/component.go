package build

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Component returns the folder with a component's programs. If the cache does not hold it,
// Component builds it, which takes minutes.
func (c Cache) Component(ctx context.Context, comp Component) (string, error) {
	r, err := recipeOf(comp)
	if err != nil {
		return "", err
	}
	release, err := goRelease(ctx)
	if err != nil {
		return "", err
	}
	label := comp.Name + " " + comp.Version
	ingredients := append([]string{comp.Module, comp.Version, comp.Sum, release, runtime.GOARCH}, slices.Concat(r.ingredients(comp), comp.With)...)
	dir, err := c.Entry(ctx, comp.Name+"-"+comp.Version, ingredients, func(dir string) error {
		return c.compile(ctx, comp, r, label, dir)
	})
	if err == nil {
		c.step(label, 1, 1)
	}
	return dir, err
}

func (c Cache) compile(ctx context.Context, comp Component, r recipe, label, dir string) error {
	c.step(label, 0, 0)
	work, err := os.MkdirTemp("", "pod-pacemaker-build-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	src, err := fetch(ctx, comp, work)
	if err != nil {
		return err
	}
	if len(r.edits) > 0 {
		if src.dir, err = edited(src.dir, filepath.Join(work, "src"), r.edits); err != nil {
			return err
		}
	}
	mode := "-mod=mod"
	if r.completeSums && len(comp.With) == 0 {
		mode = "-mod=readonly"
	}
	common := []string{mode, "-modfile=" + src.modfile, "-trimpath", "-buildvcs=false"}
	total, err := countPackages(ctx, src, r, common)
	if err != nil {
		return err
	}
	out := dir + "/"
	if len(r.packages) == 1 {
		out = filepath.Join(dir, r.programName(r.packages[0]))
	}
	args := append([]string{"build", "-v", "-o", out, "-ldflags", r.ldflags(comp)}, common...)
	if err := c.runGo(ctx, src, r, label, total, append(args, r.packages...)); err != nil {
		return err
	}
	for _, test := range r.tests {
		args := append([]string{"test", "-c", "-o", filepath.Join(dir, r.programName(test)+".test"), "-ldflags", r.ldflags(comp)}, common...)
		if err := c.runGo(ctx, src, r, label, total, append(args, test)); err != nil {
			return err
		}
	}
	return checkPrograms(dir, r)
}

// runGo runs the go command. go build -v prints a line for each compiled package; runGo reports the count as progress.
func (c Cache) runGo(ctx context.Context, src source, r recipe, label string, total int, args []string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = src.dir, goEnv(r.cgo)
	stderr, err := cmd.StderrPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("starting the go command: %w", err)
	}
	complaints, readErr := c.follow(stderr, label, total)
	if err := cmd.Wait(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("go build: %w\n%s", err, complaints)
	}
	return readErr
}

// follow reads the output of go build -v to its end, reports progress, and returns the lines that
// are not names of packages.
func (c Cache) follow(r io.Reader, label string, total int) (complaints string, err error) {
	var other bytes.Buffer
	compiled := 0
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "go: downloading ") {
			continue
		}
		if line == "" || strings.ContainsAny(line, " \t#") {
			fmt.Fprintln(&other, line)
			continue
		}
		compiled++
		// The last package is reported when the programs are in the cache.
		c.step(label, min(compiled, total-1), total)
	}
	return other.String(), lines.Err()
}

func countPackages(ctx context.Context, src source, r recipe, common []string) (int, error) {
	args := append([]string{"list", "-deps"}, common...)
	cmd := exec.CommandContext(ctx, "go", append(args, r.packages...)...)
	cmd.Dir, cmd.Env = src.dir, goEnv(r.cgo)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return 0, fmt.Errorf("listing packages: %w\n%s", err, stderr.String())
	}
	return bytes.Count(out, []byte("\n")), nil
}

func checkPrograms(dir string, r recipe) error {
	for _, name := range r.programs() {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("the build left no program %s: %w", name, err)
		}
	}
	return nil
}

// goRelease returns the release of the go command, which is an ingredient of every build.
func goRelease(ctx context.Context) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOVERSION").Output()
	if err != nil {
		return "", fmt.Errorf("asking the go command for its release (is Go in PATH?): %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
