// Command imports writes the diagram of imports in CONTRIBUTING.md: which package of the root
// module imports which. Below it is a table of the imports that the diagram leaves out, of the
// packages of the daemon. With -check it writes nothing, and fails if they are not current. Run it
// in the folder of the module integration.
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
	check := flag.Bool("check", false, "write nothing, fail if the diagram is not current")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "imports:", err)
		os.Exit(1)
	}
}

const (
	// root is the folder of the root module.
	root  = ".."
	file  = "CONTRIBUTING.md"
	begin = "<!-- imports: make generate -->\n"
	end   = "<!-- end of imports -->\n"

	// rooms is the folder of the packages of the daemon.
	rooms = "plugin/internal/"
)

func run(check bool) error {
	module, err := golist("-m")
	if err != nil {
		return err
	}
	imports, err := list(strings.TrimSpace(module))
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
	want := before + begin + draw(reduce(imports)) + table(imports) + end + after
	switch {
	case want == string(text):
		return nil
	case check:
		return errors.New(file + ": the diagram of imports is not current: run make generate")
	default:
		return os.WriteFile(path, []byte(want), 0o644)
	}
}

// list returns the imports of each package of the module, without the module's name. It leaves out
// packages of other modules, programs, and packages for tests, whose name or folder ends in "test".
func list(module string) (map[string][]string, error) {
	out, err := golist("-f", `{{if ne .Name "main"}}{{.ImportPath}}{{range .Imports}} {{.}}{{end}}{{end}}`, "./...")
	if err != nil {
		return nil, err
	}
	return parse(module, out), nil
}

// parse reads lines that each name a package, and then its imports.
func parse(module, lines string) map[string][]string {
	imports := map[string][]string{}
	for line := range strings.Lines(lines) {
		names := strings.Fields(line)
		var own []string
		for _, name := range names {
			if short, ok := strings.CutPrefix(name, module+"/"); ok && !strings.Contains(short+"/", "test/") {
				own = append(own, short)
			}
		}
		if len(own) > 0 && names[0] == module+"/"+own[0] {
			imports[own[0]] = own[1:]
		}
	}
	return imports
}

func golist(args ...string) (string, error) {
	cmd := exec.Command("go", append([]string{"list"}, args...)...)
	cmd.Dir = root
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go list: %w: %s", err, stderr.String())
	}
	return string(out), nil
}

// reduce leaves out the imports that follow from others: if a imports b and b imports c, then a to
// c.
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

// draw returns the diagram in Mermaid's language, sorted.
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

// table returns all imports of the packages of the daemon, as a table in Markdown, sorted.
func table(imports map[string][]string) string {
	var lines []string
	for from, all := range imports {
		room, ok := strings.CutPrefix(from, rooms)
		if !ok || len(all) == 0 {
			continue
		}
		var inside, outside []string
		for _, to := range slices.Sorted(slices.Values(all)) {
			if other, ok := strings.CutPrefix(to, rooms); ok {
				inside = append(inside, other)
			} else {
				outside = append(outside, to)
			}
		}
		lines = append(lines, "| `"+room+"` | "+strings.Join(inside, ", ")+" | "+strings.Join(outside, ", ")+" |\n")
	}
	slices.Sort(lines)
	return "\nAll imports of the packages in `" + rooms + "`:\n\n| package | imports of them | others of this module |\n|---|---|---|\n" + strings.Join(lines, "")
}
