package deploy

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
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

<!-- Generated from the CRDs, the programs' help and their code by ` + "`make generate`" + `: change it there. -->

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
	have := read(t, "reference.md")
	require.Equal(t, out.String(), have, "run `make generate`")
}

// cell is text in a cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "<", "&lt;", "\n", " ").Replace(strings.TrimSpace(text))
}

func writeFields(t *testing.T, out *strings.Builder, file string) {
	t.Helper()
	text := read(t, file)
	var crd struct {
		Spec struct {
			Names    struct{ Kind string }
			Versions []struct {
				Schema struct{ OpenAPIV3Schema schema }
			}
		}
	}
	require.NoError(t, yaml.Unmarshal([]byte(text), &crd))
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
			kind = "integer, or decimal in quotes"
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

// helpCommand is a command in a program's help, and helpFlag a flag.
var (
	helpCommand = regexp.MustCompile(`(?m)^  ([\w-]+) +\S.*$`)
	helpFlag    = regexp.MustCompile(`(?m)^ +(?:-(\w), )?--([\w-]+)(?: (\S+))? {2,}(.*)$`)
)

// help returns the part of a command's help that begins with the title and ends with an empty line.
func help(t *testing.T, program, command, title string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program, strings.Fields(command+" --help")...)
	cmd.Env = []string{} // which has defaults of flags
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	_, part, _ := strings.Cut(string(out), "\n"+title+":\n")
	part, _, _ = strings.Cut(part, "\n\n")
	return part
}

// flagRows returns the rows of a table with the flags, except those in the help of another command.
func flagRows(flags, without string) (rows string) {
	for _, m := range helpFlag.FindAllStringSubmatch(flags, -1) {
		if m[2] != "help" && !strings.Contains(without, m[0]) {
			rows += fmt.Sprintf("| `--%s` | %s | %s |\n", m[2], cell(m[3]), cell(m[4]))
		}
	}
	return rows
}

// writeFlags asks the programs for their commands and flags.
func writeFlags(t *testing.T, out *strings.Builder) {
	t.Helper()
	table := func(command, above, rows string) {
		if rows != "" {
			fmt.Fprintf(out, "\n## Flags of %s\n\n%s| flag | value | meaning |\n|---|---|---|\n%s", command, above, rows)
		}
	}
	daemon := buildProgram(t, "pod-pacemaker")
	for _, m := range helpCommand.FindAllStringSubmatch(help(t, daemon, "", "Available Commands"), -1) {
		above, without := "", ""
		if m[1] == "preflight" {
			above, without = "Those of `run`, and these:\n\n", help(t, daemon, "run", "Flags")
		}
		if m[1] != "completion" { // of the library
			table("pod-pacemaker "+m[1], above, flagRows(help(t, daemon, m[1], "Flags"), without))
		}
	}
	plugin := buildProgram(t, "kubectl-pacemaker")
	common := help(t, plugin, "", "Flags")
	table("kubectl pacemaker", "All its commands take these:\n\n", flagRows(common, ""))
	for _, m := range helpCommand.FindAllStringSubmatch(help(t, plugin, "", "Available Commands"), -1) {
		table("kubectl pacemaker "+m[1], "", flagRows(help(t, plugin, m[1], "Flags"), common))
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
