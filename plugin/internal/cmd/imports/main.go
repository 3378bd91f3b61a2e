// Command imports draws which package of the module imports which, into CONTRIBUTING.md. With
// -check it writes nothing, and fails where the picture is not up to date.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	check := flag.Bool("check", false, "write nothing, and fail where the picture is not up to date")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

const (
	file  = "CONTRIBUTING.md"
	begin = "<!-- imports: make generate -->\n"
	end   = "<!-- end of imports -->\n"
)

func run(check bool) error {
	root, module, err := where()
	if err != nil {
		return err
	}
	imports, err := list(root, module)
	if err != nil {
		return err
	}
	path := filepath.Join(root, file)
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, rest, ok := strings.Cut(string(text), begin)
	_, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		return fmt.Errorf("%s: the lines %q and %q are missing", file, begin, end)
	}
	want := before + begin + draw(reduce(imports)) + end + after
	switch {
	case want == string(text):
		return nil
	case check:
		return errors.New(file + ": the picture of imports is not up to date: make generate")
	default:
		return os.WriteFile(path, []byte(want), 0o644) //nolint:gosec // as every file of the repository
	}
}

// where returns the folder and the name of the module.
func where() (root, module string, err error) {
	out, err := golist(".", "-m", "-f", "{{.Dir}}\n{{.Path}}")
	if err != nil {
		return "", "", err
	}
	root, module, _ = strings.Cut(strings.TrimSpace(out), "\n")
	return root, module, nil
}

// list returns what each package imports of the module, both without the module's name; programs,
// generators and what only tests use are left out.
func list(root, module string) (map[string][]string, error) {
	out, err := golist(root, "-f", `{{if ne .Name "main"}}{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	imports := map[string][]string{}
	for line := range strings.Lines(out) {
		var own []string
		for name := range strings.FieldsSeq(line) {
			if short, ok := strings.CutPrefix(name, module+"/"); ok && !strings.HasSuffix(short, "test") {
				own = append(own, short)
			}
		}
		if len(own) > 0 && strings.HasPrefix(line, module+"/"+own[0]) {
			imports[own[0]] = own[1:]
		}
	}
	return imports, nil
}

func golist(dir string, args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...) //nolint:gosec // the arguments are this file's
	cmd.Dir = dir
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	return string(out), nil
}

// reduce leaves out what follows from other arrows: who imports a package that another import of
// its imports as well.
func reduce(imports map[string][]string) map[string][]string {
	var reaches func(from, to string) bool
	reaches = func(from, to string) bool {
		for _, next := range imports[from] {
			if next == to || reaches(next, to) {
				return true
			}
		}
		return false
	}
	reduced := map[string][]string{}
	for from, all := range imports {
		reduced[from] = nil
		for _, to := range all {
			if !slices.ContainsFunc(all, func(other string) bool { return other != to && reaches(other, to) }) {
				reduced[from] = append(reduced[from], to)
			}
		}
	}
	return reduced
}

// draw returns the picture in Mermaid's language, sorted.
func draw(imports map[string][]string) string {
	var lines []string
	for from, all := range imports {
		for _, to := range all {
			lines = append(lines, "  "+from+" --> "+to+"\n")
		}
	}
	slices.Sort(lines)
	return "```mermaid\ngraph TD\n" + strings.Join(lines, "") + "```\n"
}
