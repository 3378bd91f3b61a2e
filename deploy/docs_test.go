package deploy

import (
	"html"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// documents returns the documents whose commands, files and links are checked: the README of the project and the
// pages of the manual.
func documents(t *testing.T) []string {
	t.Helper()
	pages, err := filepath.Glob("*.md")
	require.NoError(t, err)
	require.Greater(t, len(pages), 5)
	return append(pages, "../README.md")
}

// read returns the text of a file.
func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	return string(text)
}

// commands returns the lines of the code blocks without a language. Of a block with prompts it returns only the lines
// with a prompt.
func commands(t *testing.T, document string) (lines []string) {
	t.Helper()
	text := read(t, document)
	for i, block := range strings.Split(text, "```") {
		language, content, _ := strings.Cut(block, "\n")
		if i%2 == 0 || language != "" {
			continue // between blocks, or in a block with a language
		}
		prompts := strings.HasPrefix(strings.TrimSpace(content), "$ ")
		for line := range strings.Lines(content) {
			command, prompted := strings.CutPrefix(strings.TrimSpace(line), "$ ")
			if command, _, _ = strings.Cut(command, " #"); command != "" && prompted == prompts {
				lines = append(lines, strings.TrimSpace(command))
			}
		}
	}
	return lines
}

// Package chart of the integration module renders the helm lines.
var checkable = []string{
	"make", "kubectl", "pod-pacemaker", "podman", "helm", "install", "systemctl", "grep", "containerd", "go", "v=$(git",
}

func TestDocumentedCommandsExist(t *testing.T) {
	t.Parallel()
	daemon := buildDaemon(t)
	makefile := read(t, "../Makefile")
	path := regexp.MustCompile(`(?:deploy|bin)/[-./\w]+`)
	seen := 0
	for _, document := range documents(t) {
		for _, line := range commands(t, document) {
			seen++
			words := strings.Fields(line)
			require.Contains(t, checkable, words[0], "%s: a command without a check: %s", document, line)
			for _, file := range path.FindAllString(line, -1) {
				if !strings.Contains(line, "/"+file) && !strings.HasPrefix(file, "bin/") { // a file of the repository that is not built
					require.FileExists(t, existing("../"+file), "%s: %s", document, line)
				}
			}
			switch {
			case words[0] == "make":
				require.Regexp(t, `(?m)^`+words[1]+`:.*##`, makefile, "%s: %s", document, line)
			case words[0] == "pod-pacemaker":
				requireParses(t, daemon, words[1:])
			case words[0] == "kubectl" && strings.Contains(line, " -- pod-pacemaker "):
				_, own, _ := strings.Cut(line, " -- pod-pacemaker ")
				requireParses(t, daemon, strings.Fields(own))
			}
		}
	}
	require.Greater(t, seen, 30)
}

// The scenario that runs the manual's commands takes minutes, on a node. This test checks that it has each of them.
func TestTheManualsScenarioHasEachCommand(t *testing.T) {
	t.Parallel()
	scenario := read(t, "../integration/e2e/manual_test.go")
	inCluster := regexp.MustCompile(`^(?:kubectl|helm|pod-pacemaker) [^.]`)
	inSentence := regexp.MustCompile("`([^`\n]+)`")
	seen := 0
	for _, document := range documents(t) {
		text := read(t, document)
		lines := commands(t, document)
		for i, block := range strings.Split(text, "```") {
			for _, m := range inSentence.FindAllStringSubmatch(block, -1) {
				if i%2 == 0 {
					lines = append(lines, m[1])
				}
			}
		}
		for _, line := range lines {
			if inCluster.MatchString(line) {
				seen++
				require.Regexp(t, "[\"`]"+regexp.QuoteMeta(line)+"[\"`]", scenario, "%s: the scenario does not run it", document)
			}
		}
	}
	require.Greater(t, seen, 40)
}

// A page that names a test may name several by the beginning of their names.
func TestDocumentedTestsExist(t *testing.T) {
	t.Parallel()
	var tests strings.Builder
	declared := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)`)
	require.NoError(t, filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range declared.FindAllSubmatch(text, -1) {
			tests.WriteString(" " + string(m[1]))
		}
		return err
	}))
	named, seen := regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)`"), 0
	for _, document := range documents(t) {
		text := read(t, document)
		for _, m := range named.FindAllStringSubmatch(text, -1) {
			seen++
			if !strings.Contains(tests.String(), " "+m[1]) { // the message would contain all tests
				t.Errorf("%s: there is no test %s", document, m[1])
			}
		}
	}
	require.Greater(t, seen, 50)
}

// existing returns the kustomization file of a folder, and any other path as it is.
func existing(path string) string {
	for _, file := range []string{"kustomization.yaml", "Chart.yaml"} {
		if _, err := os.Stat(filepath.Join(path, file)); err == nil {
			return filepath.Join(path, file)
		}
	}
	return path
}

// requireParses parses the command line without running it.
func requireParses(t *testing.T, daemon string, args []string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), daemon, append(args, "--help")...).CombinedOutput()
	require.NoError(t, err, "pod-pacemaker %v: %s", args, out)
	require.Contains(t, string(out), "pod-pacemaker "+args[0], args)
}

func TestDocumentedLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, document := range documents(t) {
		text := read(t, document)
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.HasPrefix(m[1], "http") {
				continue
			}
			path, heading, toHeading := strings.Cut(m[1], "#")
			target := document
			if path != "" {
				target = filepath.Join(filepath.Dir(document), path)
			}
			_, err := os.Stat(target)
			require.NoError(t, err, "%s: %s", document, m[1])
			if toHeading {
				require.Contains(t, headings(t, target), heading, "%s: %s", document, m[1])
			}
		}
	}
}

// headings returns the anchors of a document's headings.
func headings(t *testing.T, document string) (anchors []string) {
	t.Helper()
	text := read(t, document)
	for _, h := range regexp.MustCompile(`(?m)^#+ (.*)$`).FindAllStringSubmatch(text, -1) {
		anchors = append(anchors, strings.NewReplacer(" ", "-", ",", "").Replace(strings.ToLower(h[1])))
	}
	return anchors
}

// A name with our domain is an annotation, label or taint that a user may meet.
func TestTheManualSaysWhatOurNamesMean(t *testing.T) {
	t.Parallel()
	var manual strings.Builder
	for _, document := range documents(t) {
		text := read(t, document)
		manual.WriteString(text)
	}
	name, seen := regexp.MustCompile(`"(pod-pacemaker\.io/[a-z0-9-]+)"`), 0
	for _, folder := range []string{"../crd", "../plugin"} {
		require.NoError(t, filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			for _, m := range name.FindAllSubmatch(text, -1) {
				seen++
				if !strings.Contains(manual.String(), string(m[1])) { // the message would contain the manual
					t.Errorf("%s: the manual does not say what %s means", path, m[1])
				}
			}
			return err
		}))
	}
	require.Greater(t, seen, 3)
}

// The manual shows the output of status that a test expects.
func TestTheManualShowsWhatStatusPrints(t *testing.T) {
	t.Parallel()
	printed := read(t, "../plugin/cmd/pod-pacemaker/testdata/status.golden")
	page := read(t, "operate.md")
	require.Contains(t, page, printed)
}

// The manual says what check refuses in a groupBy, and of what it warns.
func TestCheckParsesGroupBy(t *testing.T) {
	t.Parallel()
	daemon := buildDaemon(t)
	page := read(t, "policies.md")
	for groupBy, valid := range map[string]bool{".spec.containers[0": false, ".spec.containres": true, ".metadata.labels.app.kubernetes.io/name": true} {
		cmd := exec.CommandContext(t.Context(), daemon, "check", "-")
		cmd.Stdin = strings.NewReader(`{apiVersion: pod-pacemaker.io/v1alpha1, kind: StartPolicy, metadata: {name: p},
			spec: {selector: {terms: [{podSelector: {}}]}, limits: {starting: {pods: 1}}, groupBy: "` + groupBy + `"}}`)
		out, err := cmd.CombinedOutput()
		require.Equal(t, valid, err == nil, "%s: %s", groupBy, out)
		if valid {
			require.Contains(t, page, "`"+groupBy+"`", "the manual names paths that check accepts, and that find nothing")
			require.Contains(t, string(out), "Warning: no pod has ")
		} else {
			require.Contains(t, string(out), "must be a JSONPath")
		}
	}
}

// The tests that run the commands within sentences read one line at a time.
func TestNoCodeIsBrokenAcrossLines(t *testing.T) {
	t.Parallel()
	for _, document := range documents(t) {
		text := read(t, document)
		for i, block := range strings.Split(text, "```") {
			for line := range strings.Lines(block) {
				require.True(t, i%2 == 1 || strings.Count(line, "`")%2 == 0, "%s: %s", document, line)
			}
		}
	}
}

// The README says the same of its two herds as its picture.
func TestTheReadmeSaysWhatItsPictureShows(t *testing.T) {
	t.Parallel()
	picture := read(t, "herd.svg")
	readme := read(t, "../README.md")
	require.Contains(t, readme, "](deploy/herd.svg)")
	sentences := regexp.MustCompile(`class="sentence"[^>]*>([^<]+)<`).FindAllStringSubmatch(picture, -1)
	require.Len(t, sentences, 2, "one sentence for the herd without pod-pacemaker, one for the herd with it")
	for _, s := range sentences {
		require.Contains(t, strings.Join(strings.Fields(readme), " "), html.UnescapeString(s[1]))
	}
}
