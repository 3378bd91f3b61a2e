package plugin

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// computes matches calls that only compute: builtins and conversions, of some packages, methods of times and errors, which
// it knows by the names of their variables, and of the runtime's messages. A name alone says nothing: a log has a method
// Error, and a wait group a method Add. Unlock and RUnlock are the end of what is looked at.
var computes = regexp.MustCompile(`^(append|clear|close|delete|float64|int|len|make|max|min|new)$` +
	`|^(cmp|errors|maps|rand|slices|strings)\.\w+$|^fmt\.(Errorf|Sprintf)$|^time\.(Now|AfterFunc|Duration)$` +
	`|^(again|began|deadline|end|now(\.Add\(-d\))?|(\w+\.)+(Admitted\(\)|Arrived|StalledSince|StopsBy|To|Youngest|endedAt|from|relistAt))` +
	`\.(Add|After|Before|IsZero|Sub)$` +
	`|^(c\.lastError|err)\.Error$|^(v\.shutdownLimit|w\.relisting)\.Stop$|\.(Abs|GetId|GetState|R?Unlock|unlock)$`)

// underLocks is what else is done under mutexes, by folder, and why it may be.
var underLocks = map[string]string{
	"plugin/internal/signals m.history.add":      "it only computes",
	"plugin/internal/signals m.settings.Watches": "the same",
	"plugin/internal/signals s.Watches":          "the same",
	"plugin/internal/signals throttle.Signal":    "a conversion",
	"plugin/internal/learning m.table.All":       "the table only computes, and has no lock of its own",
	"plugin/internal/learning m.table.Clone":     "the same",
	"plugin/internal/learning m.table.Expect":    "the same",
	"plugin/internal/learning m.table.Observe":   "the same",
	"plugin/podwatch c.pod.Terminal":             "it only computes",
}

// A mutex is a leaf: while it is held, no other mutex is taken, nothing is logged, read, written or waited for, and no
// other package is called. This test reads what the source does between Lock and Unlock, and between RLock and RUnlock,
// also in the functions of the same package that it calls. Package throttle has a test of its own for the limiter, and so
// has package starts for the lock on the way of a start: what it guards has nothing else to call.
//
// It does not see the locks inside a sync.Map and a rate.Limiter. Those are leaves too: both only compute.
func TestEveryMutexIsALeaf(t *testing.T) {
	t.Parallel()
	folders := map[string]*lockedCode{}
	for _, top := range []string{"crd", "plugin", "throttle"} {
		require.NoError(t, filepath.WalkDir("../"+top, func(path string, entry fs.DirEntry, err error) error {
			folder := strings.TrimPrefix(filepath.Dir(path), "../")
			switch {
			case err != nil, entry.IsDir(), !strings.HasSuffix(path, ".go"), strings.HasSuffix(path, "_test.go"):
				return err
			case folder == "throttle", folder == "plugin/internal/starts", folder == "plugin/runtimetest":
				return nil
			case folders[folder] == nil:
				folders[folder] = &lockedCode{files: token.NewFileSet(), found: map[string]token.Pos{}}
			}
			l := folders[folder]
			file, err := parser.ParseFile(l.files, path, nil, parser.SkipObjectResolution)
			l.declared = append(l.declared, file.Decls...)
			return err
		}))
	}
	done := map[string]bool{}
	for folder, l := range folders {
		for _, d := range l.declared {
			l.sections(d)
		}
		for what, at := range l.found {
			what = folder + " " + what
			done[what] = true
			assert.NotEmpty(t, underLocks[what], "%s: %s is called under a mutex. If it only computes, add it to underLocks, with the reason",
				l.files.Position(at), what)
		}
	}
	for what := range underLocks {
		assert.True(t, done[what], "%s: not under a mutex any more", what)
	}
}

// lockedCode finds what a package does under mutexes.
type lockedCode struct {
	files    *token.FileSet
	declared []ast.Decl
	whole    []ast.Decl // functions that were read from begin to end
	found    map[string]token.Pos
}

// locks and unlocks match the calls that begin and end the time for which a mutex is held, for writing or for reading.
var (
	locks   = regexp.MustCompile(`\.R?Lock$`)
	unlocks = regexp.MustCompile(`\.R?Unlock$`)
)

// sections reads a function from each Lock or RLock to the last Unlock or RUnlock, or to the end if that is deferred.
func (l *lockedCode) sections(d ast.Decl) {
	from, to := d.End(), d.End()
	ast.Inspect(d, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.DeferStmt:
			return !unlocks.MatchString(types.ExprString(n.Call.Fun))
		case *ast.CallExpr:
			text := types.ExprString(n.Fun)
			if unlocks.MatchString(text) {
				to = n.Pos()
			} else if locks.MatchString(text) {
				l.section(d, from, to)
				from, to = n.End(), d.End()
			}
		}
		return true
	})
	l.section(d, from, to)
}

// section reads a function between two positions.
func (l *lockedCode) section(d ast.Decl, from, to token.Pos) {
	ast.Inspect(d, func(n ast.Node) bool {
		if n == nil || n.Pos() < from || n.Pos() >= to {
			return true
		}
		switch n := n.(type) {
		case *ast.SelectStmt: // with a default, it does not wait
			return !slices.ContainsFunc(n.Body.List, func(c ast.Stmt) bool {
				clause, ok := c.(*ast.CommClause)
				return ok && clause.Comm == nil
			})
		case *ast.SendStmt:
			l.found[types.ExprString(n.Chan)+" <-"] = n.Pos()
		case *ast.UnaryExpr:
			if n.Op == token.ARROW {
				l.found[types.ExprString(n)] = n.Pos()
			}
		case *ast.CallExpr:
			l.call(n.Pos(), types.ExprString(n.Fun))
		}
		return true
	})
}

// call reads the functions of the package that a call may be of: those of that name, but for a method of a field.
func (l *lockedCode) call(at token.Pos, text string) {
	if computes.MatchString(text) {
		return
	}
	dots, name, own := strings.Count(text, "."), text[strings.LastIndex(text, ".")+1:], false
	for _, d := range l.declared {
		f, ok := d.(*ast.FuncDecl)
		if !ok || f.Name.Name != name || dots > 1 || (f.Recv != nil) != (dots == 1) {
			continue
		}
		if own = true; !slices.Contains(l.whole, d) {
			l.whole = append(l.whole, d)
			l.section(d, f.Body.Pos(), d.End())
		}
	}
	if !own {
		l.found[text] = at
	}
}
