package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/throttle/reasons"
)

const (
	evil      = "\x1b]0;x\a\u009b31m\u202egnp\r\nroot# \xff"
	plainEvil = "]0;x 31m gnp root# \ufffd"
)

// assertPlain checks that text controls no terminal.
func assertPlain(t *testing.T, text string) {
	t.Helper()
	assert.True(t, utf8.ValidString(text))
	assert.False(t, strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) && r != '\n' && r != '\t' }), "%q", text)
	assert.NotContains(t, text, "\nroot#")
}

// The daemon may report what a tenant wrote.
func TestTextFromElsewhereCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A", 64<<10)
	s := herd()
	s.Node, s.Ready, s.NotReady, s.Runtime.LastError, s.Config.Name = evil, false, evil, evil, evil
	s.Waiting[0].Name, s.Waiting[0].Reason = "evil", reasons.PolicyRunning
	s.Waiting[0].Held = &admin.Held{Reason: reasons.PolicyRunning, Detail: evil + long}
	s.Policies = []admin.Policy{{Name: evil, Fault: evil, GroupCount: 1, Groups: []v1alpha1.PolicyGroup{{Group: evil + long, Throttled: []string{evil}}}}}
	dir := serve(t, &fixed{status: s})
	for _, args := range [][]string{{"status"}, {"status", "-o", "json"}, {"why", s.Waiting[0].Namespace + "/evil"}, {"why", "shop/" + evil}, {"--x" + evil}} {
		_, stdout, stderr := call(t, append(args, "--run-dir", dir)...)
		require.NotEmpty(t, stdout+stderr)
		assertPlain(t, stdout)
		assertPlain(t, stderr)
		if args[len(args)-1] != "json" {
			assert.NotContains(t, stdout, strings.Repeat("A", 4097), args)
		}
	}
}

func TestCheckedFilesCannotControlTheTerminal(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("A", 64<<10)
	const head = "apiVersion: pod-pacemaker.io/v1alpha1\nkind: "
	quotedEvil := `"\x1b]0;x\a\x9b31m\u202egnp\r\nroot# ` + long + `"`
	spec := "StartPolicy\nmetadata: {name: p}\nspec: {selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: 1}}, "
	for _, text := range []string{
		head + quotedEvil, head + "StartPolicy\nmetadata: {name: " + quotedEvil + "}\n", head + spec + "groupBy: " + quotedEvil + "}\n",
		head + spec + quotedEvil + ": 1}\n", head + spec + "temporaryOverrides: [{begin: " + quotedEvil + ", end: x, limits: {running: {pods: 1}}}]}\n",
		head + spec + `groupBy: ".spec.\x1b[2J"}` + "\n", evil + long,
	} {
		file := filepath.Join(t.TempDir(), "policy.yaml")
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		code, stdout, stderr := call(t, "check", file)
		assert.Equal(t, exitInvalid, code)
		assertPlain(t, stdout)
		assertPlain(t, stderr)
		assert.Less(t, len(stderr), 16<<10)
		for line := range strings.Lines(stderr) {
			assert.True(t, strings.HasPrefix(line, "pod-pacemaker: "), "%.200q", line)
		}
	}
}
