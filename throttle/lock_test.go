package throttle

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// computing lists what the source of the limiter may call outside of its packages, by folder: packages, or functions of
// them. None of these does I/O, waits, or reads a clock.
var computing = map[string][]string{
	".": {
		"cmp", "maps", "math", "slices", "sort", "reflect.DeepEqual", "time.Duration",
		"golang.org/x/time/rate", // a token bucket: its own lock, and the time as a parameter
		own + "adaptive", own + "costs", own + "reasons",
	},
	"adaptive": {"cmp", "fmt.Sprintf", "math", "slices", "time.Duration", own + "costs"},
	"costs":    {"cmp", "encoding/json", "fmt.Errorf", "maps", "math", "slices", "strings", "time.Duration"},
	"reasons":  {},
}

const own = "github.com/pod-pacemaker/pod-pacemaker/throttle/"

// foreignMethods are the methods of types of those packages that are called.
var foreignMethods = strings.Fields("Abs Add After Before Compare Equal IsZero Seconds Sub" + // time
	" AllowN SetBurstAt SetLimitAt TokensAt" + // rate
	" Allow AllowSoon Configure Observe Spend Why") // adaptive

// funcValues are the functions that are called as values, and why they may be.
var funcValues = map[string]string{
	"change":  "each caller of queue.move sets fields of a ticket",
	"include": "each caller of queue.each passes a literal or a method of this package",
	"visit":   "the same",
}

// A lock is held during every call of an exported method, so the limiter only computes. This test reads
// the whole source of the package, and of those that it calls: it does no I/O, logs nothing, waits for nothing, reads no
// clock, and calls nothing that its users pass to it.
func TestTheLimiterOnlyComputes(t *testing.T) {
	t.Parallel()
	for folder := range computing {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		require.NoError(t, err)
		s := source{t: t, folder: folder, fset: token.NewFileSet(), declared: map[string]bool{}}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			file, err := parser.ParseFile(s.fset, name, nil, parser.SkipObjectResolution)
			require.NoError(t, err)
			s.files = append(s.files, file)
		}
		require.NotEmpty(t, s.files)
		s.check()
	}
}

type source struct {
	t        *testing.T
	folder   string
	fset     *token.FileSet
	files    []*ast.File
	declared map[string]bool // functions, also in variables, methods and types
}

func (s *source) fault(at ast.Node, format string, args ...any) {
	assert.Fail(s.t, fmt.Sprintf(format, args...), s.fset.Position(at.Pos()))
}

func (s *source) check() {
	for _, file := range s.files {
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				s.declared[n.Name.Name] = true
			case *ast.TypeSpec:
				s.declared[n.Name.Name] = true
			case *ast.AssignStmt: // this test reads the literal, too
				if _, ok := n.Rhs[0].(*ast.FuncLit); ok {
					s.declared[types.ExprString(n.Lhs[0])] = true
				}
			}
			return true
		})
	}
	for _, file := range s.files {
		packages := map[string]string{} // the paths of the imports, by name
		for _, i := range file.Imports {
			of, err := strconv.Unquote(i.Path.Value)
			require.NoError(s.t, err)
			packages[path.Base(of)] = of
			if !s.mayCall(of, "") {
				s.fault(i, "imports %s", of)
			}
		}
		ast.Inspect(file, func(n ast.Node) bool { return s.node(n, packages) })
	}
}

// mayCall reports whether a function of a package may be called; an empty name: whether any may.
func (s *source) mayCall(of, name string) bool {
	for _, may := range computing[s.folder] {
		if may == of || may == of+"."+name || name == "" && strings.HasPrefix(may, of+".") {
			return true
		}
	}
	return false
}

func (s *source) node(n ast.Node, packages map[string]string) bool {
	switch n := n.(type) {
	case *ast.GoStmt:
		s.fault(n, "starts a goroutine")
	case *ast.SelectStmt: // with a default, it does not wait
		waits := true
		for _, c := range n.Body.List {
			if clause, ok := c.(*ast.CommClause); ok {
				waits = waits && clause.Comm != nil
				for _, does := range clause.Body {
					ast.Inspect(does, func(n ast.Node) bool { return s.node(n, packages) })
				}
			}
		}
		if waits {
			s.fault(n, "waits")
		}
		return false
	case *ast.SendStmt:
		s.fault(n, "sends to a channel")
	case *ast.UnaryExpr:
		if n.Op == token.ARROW {
			s.fault(n, "receives from a channel")
		}
	case *ast.StructType:
		for _, f := range n.Fields.List {
			s.field(f)
		}
	case *ast.FuncDecl:
		for _, p := range n.Type.Params.List {
			if n.Name.IsExported() && n.Recv != nil {
				s.field(p)
			}
		}
	case *ast.CallExpr:
		s.call(n, packages)
	}
	return true
}

// field allows no field or parameter through which users could pass what the limiter then calls.
func (s *source) field(f *ast.Field) {
	text := types.ExprString(f.Type)
	if strings.Contains(text, "func(") || strings.Contains(text, "interface") || text == "any" {
		s.fault(f, "calls what it is given: %s", text)
	}
}

func (s *source) call(n *ast.CallExpr, packages map[string]string) {
	switch f := n.Fun.(type) {
	case *ast.Ident:
		if types.Universe.Lookup(f.Name) == nil && !s.declared[f.Name] && funcValues[f.Name] == "" {
			s.fault(n, "calls the value %s", f.Name)
		}
	case *ast.SelectorExpr:
		of, isPackage := "", false
		if x, ok := f.X.(*ast.Ident); ok {
			of, isPackage = packages[x.Name]
		}
		switch {
		case isPackage && !s.mayCall(of, f.Sel.Name):
			s.fault(n, "calls %s.%s", of, f.Sel.Name)
		case !isPackage && !s.declared[f.Sel.Name] && !slices.Contains(foreignMethods, f.Sel.Name):
			s.fault(n, "calls the method %s", f.Sel.Name)
		}
	case *ast.ArrayType, *ast.FuncLit, *ast.ParenExpr: // a conversion, or a literal that this test reads
	default:
		s.fault(n, "calls %s", types.ExprString(n.Fun))
	}
}
