package deploy

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "rewrite reference.md")

const referenceHead = `# Reference

<!-- Generated from the CRDs, the program's help and its code by ` + "`make generate`" + `: change it there. -->

The metrics have [a page of their own](metrics.md), the values of the chart [another](chart/pod-pacemaker/README.md).
The default of a field or flag marked (advanced) is right for nearly every node.
`

// schema is the part of an OpenAPI schema that the reference shows.
type schema struct {
	Type, Description, Format string
	Default                   any
	Enum                      []any
	Properties                map[string]schema
	Items                     *schema
	AnyOf                     []struct{ Type string }
}

// The reference is generated from the files that it describes, so it cannot be wrong.
func TestTheReferenceIsCurrent(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	out.WriteString(referenceHead)
	for _, kind := range []string{"pacemakerconfigs", "startpolicies"} {
		writeFields(t, &out, "crds/pod-pacemaker.io_"+kind+".yaml")
	}
	writeFlags(t, &out)
	writeReasons(t, &out)
	if *update {
		require.NoError(t, os.WriteFile("reference.md", []byte(out.String()), 0o644))
	}
	have, err := os.ReadFile("reference.md")
	require.NoError(t, err)
	require.Equal(t, out.String(), string(have), "run `make generate`")
}

// cell is text in a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(strings.TrimSpace(text))
}

func writeFields(t *testing.T, out *strings.Builder, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var crd struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal(text, &crd))
	require.Len(t, crd.Spec.Versions, 1)
	fmt.Fprintf(out, "\n## Fields of %s\n\n| field of `spec` | type | default | meaning |\n|---|---|---|---|\n", crd.Spec.Names.Kind)
	writeProperties(out, "", crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"].Properties)
}

// marked puts the word "advanced" of an advanced field in front of its description, as for flags.
func marked(description string) string {
	text, advanced := strings.CutSuffix(strings.TrimSpace(description), "Advanced.")
	if advanced {
		return "(advanced) " + text
	}
	return text
}

func writeProperties(out *strings.Builder, prefix string, properties map[string]schema) {
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		p := properties[name]
		kind, inner, path := p.Type, p.Properties, prefix+name
		if len(p.AnyOf) > 0 {
			kind = "number or string"
		}
		if len(p.Enum) > 0 {
			words := make([]string, len(p.Enum))
			for i, word := range p.Enum {
				words[i] = fmt.Sprint(word)
			}
			kind = strings.Join(words, ", ")
		}
		if p.Items != nil {
			kind, inner, path = "list of "+p.Items.Type, p.Items.Properties, path+"[]"
		}
		standard := ""
		if p.Default != nil && p.Type != "object" {
			standard = fmt.Sprintf("`%v`", p.Default)
		}
		fmt.Fprintf(out, "| `%s` | %s | %s | %s |\n", prefix+name, kind, standard, cell(marked(p.Description)))
		writeProperties(out, path+".", inner)
	}
}

// helpFlag is a flag in the program's help.
var helpFlag = regexp.MustCompile(`(?m)^ +(?:-(\w), )?--([\w-]+)(?: (\S+))? {2,}(.*)$`)

// writeFlags reads the flags from the golden files of the program's help.
func writeFlags(t *testing.T, out *strings.Builder) {
	t.Helper()
	for _, command := range []string{"run", "preflight", "status", "why", "check", "copy-kubelet-config", "metrics-proxy", "alive"} {
		text, err := os.ReadFile("../plugin/cmd/pod-pacemaker/testdata/help-" + command + ".golden")
		require.NoError(t, err)
		_, flags, found := strings.Cut(string(text), "\nFlags:\n")
		require.True(t, found, command)
		fmt.Fprintf(out, "\n## Flags of pod-pacemaker %s\n\n", command)
		if command == "preflight" {
			out.WriteString("Those of `run`, and these:\n\n")
		}
		out.WriteString("| flag | value | meaning |\n|---|---|---|\n")
		for _, m := range helpFlag.FindAllStringSubmatch(flags, -1) {
			if m[2] == "help" || command == "preflight" && m[2] != "output" && m[2] != "cni-conf-dir" {
				continue
			}
			fmt.Fprintf(out, "| `--%s` | %s | %s |\n", m[2], cell(m[3]), cell(m[4]))
		}
	}
}

// word is a reason that appears in the API, events, logs and metrics.
type word struct{ name, meaning, group string }

// writeReasons writes the constants of the type Reason, with their comments.
func writeReasons(t *testing.T, out *strings.Builder) {
	t.Helper()
	var words []word
	for _, tree := range []string{"../throttle", "../plugin"} {
		require.NoError(t, filepath.WalkDir(tree, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err == nil {
				words = append(words, reasonsIn(file)...)
			}
			return err
		}))
	}
	require.Greater(t, len(words), 30)
	out.WriteString("\n## Reasons\n\nThe same words in the API, events, logs, metrics and `why`. `GateFull` and `Pulling` are only reasons of a\nrefusal: `why` then says what holds the queue.\n")
	group := ""
	for _, w := range words {
		if w.group != group {
			group = w.group
			fmt.Fprintf(out, "\n%s:\n\n| reason | meaning |\n|---|---|\n", strings.TrimRight(group, "."))
		}
		fmt.Fprintf(out, "| `%s` | %s |\n", w.name, cell(w.meaning))
	}
}

// reasonsIn returns the constants of the type Reason in a file, in their order.
func reasonsIn(file *ast.File) (words []word) {
	for _, declaration := range file.Decls {
		constants, ok := declaration.(*ast.GenDecl)
		if !ok || constants.Tok != token.CONST {
			continue
		}
		for _, spec := range constants.Specs {
			value, ok := spec.(*ast.ValueSpec)
			if !ok || value.Type == nil || len(value.Values) != 1 || !isReason(value.Type) {
				continue
			}
			literal, ok := value.Values[0].(*ast.BasicLit)
			if !ok {
				continue
			}
			name, err := strconv.Unquote(literal.Value)
			if err != nil {
				continue
			}
			meaning := value.Comment.Text()
			if meaning == "" {
				// The constant's own name at the beginning of a comment above is left out.
				meaning = strings.TrimLeft(strings.TrimPrefix(value.Doc.Text(), value.Names[0].Name), ": ")
			}
			words = append(words, word{name, meaning, strings.TrimSpace(constants.Doc.Text())})
		}
	}
	return words
}

func isReason(of ast.Expr) bool {
	switch kind := of.(type) {
	case *ast.Ident:
		return kind.Name == "Reason"
	case *ast.SelectorExpr:
		return kind.Sel.Name == "Reason"
	}
	return false
}
