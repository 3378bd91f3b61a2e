package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"go/ast"
	"go/build/constraint"
	"go/doc"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/integration/verdicts"
)

// file is the list's name, in the folder of the scenarios, and ended that of their verdicts.
const (
	file  = "README.md"
	ended = "verdicts.jsonl"
)

// end is the line after the list. What follows it is written by hand, and kept.
const end = "\n<!-- end of the list -->\n"

// scenario is a test function in the folder of scenarios.
type scenario struct {
	name, file string
	says       string // the first sentence of its comment
	short      bool   // `make e2e` runs it
}

// run writes the list of a folder, or checks it.
func run(folder string, check bool) error {
	all, err := scenarios(folder)
	if err != nil {
		return err
	}
	found, err := verdicts.Read(filepath.Join(folder, ended))
	if err != nil {
		return err
	}
	latest := verdicts.Latest(slices.DeleteFunc(found, func(v verdicts.Verdict) bool { return !v.Passed }))
	path := filepath.Join(folder, file)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	_, kept, _ := strings.Cut(string(old), end)
	text := string(list(all, latest)) + end + kept
	switch {
	case text == string(old):
		return nil
	case check:
		return fmt.Errorf("%s is not current: `make generate` writes it", path)
	}
	return os.WriteFile(path, []byte(text), 0o644)
}

// scenarios reads the tests of a folder, in the order of their names.
func scenarios(folder string) (all []scenario, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	for _, path := range files {
		of, err := scenariosOf(path)
		if err != nil {
			return nil, err
		}
		all = append(all, of...)
	}
	slices.SortFunc(all, func(a, b scenario) int { return cmp.Compare(a.name, b.name) })
	return all, nil
}

func scenariosOf(path string) (all []scenario, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	tags, err := constraintOf(parsed)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if !holds(tags, "e2e", "full") {
		return nil, nil // a tool, which no target of the Makefile runs
	}
	for _, declared := range parsed.Decls {
		f, ok := declared.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Test") || f.Name.Name == "TestMain" {
			continue
		}
		says := new(doc.Package).Synopsis(f.Doc.Text())
		if says == "" {
			return nil, fmt.Errorf("%s: %s has no comment that says what it shows", path, f.Name.Name)
		}
		all = append(all, scenario{name: f.Name.Name, file: filepath.Base(path), says: says, short: holds(tags, "e2e")})
	}
	return all, nil
}

// constraintOf returns the build constraint of a file.
func constraintOf(f *ast.File) (constraint.Expr, error) {
	for _, group := range f.Comments {
		for _, c := range group.List {
			if constraint.IsGoBuild(c.Text) {
				return constraint.Parse(c.Text)
			}
		}
	}
	return nil, errors.New("it has no build constraint")
}

// holds reports whether these tags alone satisfy a constraint.
func holds(c constraint.Expr, tags ...string) bool {
	return c.Eval(func(tag string) bool { return slices.Contains(tags, tag) })
}

// list returns the text of the list. latest has the latest verdict of each scenario that passed.
func list(all []scenario, latest map[string]verdicts.Verdict) []byte {
	var text bytes.Buffer
	count, rows := 0, []string{}
	for _, s := range all {
		where := "`e2e-full`"
		if s.short {
			where, count = "`e2e`", count+1
		}
		when := "not yet"
		if v, ok := latest[s.name]; ok {
			when = fmt.Sprintf("%s, %s, %.0f s", v.At.Format(time.DateOnly), v.Commit, v.Seconds)
		}
		rows = append(rows, fmt.Sprintf("| [%s](%s) | %s | %s | %s |", "`"+s.name+"`", s.file, where, when, strings.ReplaceAll(s.says, "|", `\|`)))
	}
	fmt.Fprintf(&text, "# The scenarios\n\nWritten by `make generate` from the scenarios' own comments: change them there.\n\n"+
		"%d scenarios run on the node. `make e2e` runs %d of them, `make e2e-full` all. When each passed last is read from\n"+
		"`verdicts.jsonl`, which `make verdicts` writes.\n\n"+
		"| scenario | run by | passed | what it shows |\n|---|---|---|---|\n%s\n", len(all), count, strings.Join(rows, "\n"))
	return text.Bytes()
}
