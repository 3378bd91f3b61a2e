package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// The programs that are shipped, and their folders.
const (
	root     = ".." // the folder of the root module
	programs = "./plugin/cmd/..."
)

// legal matches the names of the files that must be shipped with a module.
var legal = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents|copyright)([._-].*)?$`)

// module is one dependency; Dir is the folder of its code.
type module struct {
	Path, Version, Dir string
	Main               bool
}

func run(ctx context.Context, args []string, stdout io.Writer) error {
	flags := flag.NewFlagSet("licenses", flag.ContinueOnError)
	to := flags.String("o", "", "`folder` to write the licences to")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *to == "" {
		return errors.New("-o: must be the folder to write to")
	}
	linked, err := modules(ctx)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(*to); err != nil {
		return err
	}
	for _, m := range linked {
		if err := collect(m, *to); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintf(stdout, "%s: licences of %d modules\n", *to, len(linked))
	return err
}

// modules returns Go itself and the modules that are linked into the programs for any platform of a release, sorted by
// path.
func modules(ctx context.Context) ([]module, error) {
	goroot, err := output(ctx, nil, "env", "GOROOT")
	if err != nil {
		return nil, err
	}
	goVersion, err := output(ctx, nil, "env", "GOVERSION")
	if err != nil {
		return nil, err
	}
	found := map[string]module{"go": {Path: "go", Version: strings.TrimSpace(string(goVersion)), Dir: strings.TrimSpace(string(goroot))}}
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"} {
		system, arch, _ := strings.Cut(platform, "/")
		out, err := output(ctx, []string{"GOOS=" + system, "GOARCH=" + arch, "CGO_ENABLED=0"},
			"list", "-e", "-deps", "-json=Module", programs)
		if err != nil {
			return nil, err
		}
		for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
			var p struct{ Module *module }
			err := decoder.Decode(&p)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("decode the output of go list: %w", err)
			}
			if p.Module != nil && !p.Module.Main {
				found[p.Module.Path] = *p.Module
			}
		}
	}
	all := make([]module, 0, len(found))
	for _, m := range found {
		all = append(all, m)
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.Path, b.Path) })
	return all, nil
}

func output(ctx context.Context, env []string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go %s: %w: %s", strings.Join(args, " "), err, stderr.Bytes())
	}
	return out, nil
}

// collect copies the licence files of a module. A module without a licence is an error, because it
// must not be shipped.
func collect(m module, to string) error {
	entries, err := os.ReadDir(m.Dir)
	if err != nil {
		return fmt.Errorf("read the code of %s: %w", m.Path, err)
	}
	copied := 0
	folder := filepath.Join(to, strings.ReplaceAll(m.Path, "/", "_")+"@"+m.Version)
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !legal.MatchString(entry.Name()) || strings.HasSuffix(entry.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(m.Dir, entry.Name()))
		if err != nil {
			return err
		}
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, entry.Name()), text, 0o644); err != nil {
			return err
		}
		copied++
	}
	if copied == 0 {
		return fmt.Errorf("%s %s has no licence in %s", m.Path, m.Version, m.Dir)
	}
	return nil
}
