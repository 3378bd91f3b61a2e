//go:build e2e && full

package e2e

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/images"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

const (
	// nodeTests are Kubernetes' own tests of what a node does with pods, containers, probes, init containers, lifecycle
	// hooks and ephemeral containers, but for those that must run alone, and for three that wait for many minutes.
	nodeTests = "NodeConformance && !Serial && !Disruptive && !Slow"
	nodeFocus = `\[sig-node\]`
	// notHere are tests that fail here without the daemon, most of them after ten minutes: their images have other users,
	// tools, certificates or signal handlers than those that can be made here, or another shell.
	notHere = `AllowPrivilegeEscalation|via the environment|Override hostname of Pod|PrivilegedPod|in progress of terminating|image specified user|https hook`
	// atOnce is how many of the tests run at a time: most of them wait, some for minutes.
	atOnce = 20
	// fewestNodeTests is how many of them pass here without the daemon at least. The others need what the lab does not
	// have, such as runc with seccomp.
	fewestNodeTests = 100
)

// Kubernetes' own tests of a node, without the daemon, with it at a limit of two starts at a time, and with the adaptive
// limit: each test that passes without the daemon passes with it. A test that fails is tried once more, in each of the
// three.
func TestKubernetesOwnTestsOfTheNode(t *testing.T) {
	suite := prepareNodeTests(t)
	names := suite.names
	for _, with := range []struct{ name, spec string }{
		{"without the daemon", ""},
		{"at a limit of 2", "{throttleConfig: {maxConcurrent: {value: 2}}}"},
		{"adaptive", "{throttleConfig: {adaptive: {}}}"},
	} {
		t.Run(with.name, func(t *testing.T) {
			var d *daemon
			if with.spec != "" {
				removeRoomLater(t)
				d = startDaemon(t, roomArgs("auto")...)
				d.configure(t, with.spec)
				d.awaitRoom(t)
			}
			began := time.Now()
			passed, failed := suite.run(t, names)
			figure(t, "%s: %d of Kubernetes' tests of the node pass, %d fail, in %s", with.name, len(passed), len(failed), time.Since(began).Round(time.Second))
			if d == nil {
				t.Logf("fail here without the daemon:\n%s", strings.Join(failed, "\n"))
				require.GreaterOrEqual(t, len(passed), fewestNodeTests)
				names = passed
				return
			}
			assert.Empty(t, failed, "tests that pass without the daemon")
			assert.Equal(t, names, passed)
			d.idle(t)
		})
	}
}

// kubernetesTests is the program with Kubernetes' tests, and what it needs.
type kubernetesTests struct {
	program string
	env     []string
	names   []string // of the tests
}

// prepareNodeTests builds the program and the images that its pods use, and lists the tests.
func prepareNodeTests(t *testing.T) kubernetesTests {
	t.Helper()
	component, err := build.Find("kubernetes-tests")
	require.NoError(t, err)
	cache, err := lab.CacheDir()
	require.NoError(t, err)
	dir, err := build.Cache{Dir: cache, Progress: build.PlainProgress(os.Stderr)}.Component(t.Context(), component)
	require.NoError(t, err)
	const registry = "pod-pacemaker.local"
	registries := filepath.Join(t.TempDir(), "registries.yaml")
	require.NoError(t, os.WriteFile(registries, []byte("promoterE2eRegistry: "+registry+"\ngcRegistry: "+registry+"\n"), 0o600))
	s := kubernetesTests{program: filepath.Join(dir, "e2e.test"), env: append(os.Environ(), "KUBE_TEST_REPO_LIST="+registries)}

	importTestImages(t, filepath.Join(dir, "agnhost"), regexp.MustCompile(`(?m)^`+regexp.QuoteMeta(registry)+`/\S+`).FindAllString(s.output(t, "--list-images"), -1))
	listed := filepath.Join(t.TempDir(), "listed.xml")
	s.output(t, s.flags(nodeFocus, listed, "--ginkgo.dry-run")...)
	for _, c := range readJUnit(t, listed) {
		s.names = append(s.names, c.Name)
	}
	require.GreaterOrEqual(t, len(s.names), fewestNodeTests, "tests that the program lists")
	return s
}

// importTestImages makes those of the images that can be made: agnhost, with busybox for its shell, busybox, and pause.
func importTestImages(t *testing.T, agnhost string, names []string) {
	t.Helper()
	busybox, err := exec.LookPath("busybox")
	require.NoError(t, err, "Debian's package busybox-static has it")
	applets, err := exec.CommandContext(t.Context(), busybox, "--list").Output()
	require.NoError(t, err)
	curl := filepath.Join(t.TempDir(), "curl") // tests of lifecycle hooks call it
	require.NoError(t, os.WriteFile(curl, []byte("#!/bin/sh\nexec wget -q -O - \"$1\"\n"), 0o600))
	shell := images.Content{Programs: map[string]string{"/bin/busybox": busybox}, Links: map[string]string{}, Folders: []string{"/tmp", "/uploads"}}
	for applet := range strings.FieldsSeq(string(applets)) {
		if applet != "busybox" {
			shell.Links["/bin/"+applet] = "busybox"
		}
	}
	var without []string
	for _, name := range names {
		content := shell
		switch program := strings.TrimPrefix(name[:strings.LastIndex(name, ":")], "pod-pacemaker.local/"); program {
		case "busybox":
			content.Cmd = []string{"sh"}
		case "agnhost", "pause":
			content.Programs = map[string]string{"/bin/busybox": busybox, "/bin/curl": curl, "/agnhost": agnhost, "/agnhost-2": agnhost}
			content.Entrypoint, content.Cmd = []string{"/agnhost"}, []string{"pause"}
		default:
			without = append(without, program)
			continue
		}
		tar := filepath.Join(t.TempDir(), "image.tar")
		require.NoError(t, images.FromFiles(name, content, tar))
		out, err := node.CTR(t.Context(), "images", "import", "--local", tar)
		require.NoError(t, err, "%s", out)
	}
	t.Logf("images that cannot be made here: %s", strings.Join(without, ", "))
}

func (s kubernetesTests) flags(focus, report string, more ...string) []string {
	return append([]string{
		"--kubeconfig", node.Kubeconfig, "--provider", "skeleton", "--num-nodes", "1",
		"--ginkgo.label-filter", nodeTests, "--ginkgo.focus", focus, "--ginkgo.skip", notHere, "--ginkgo.junit-report", report,
		"--ginkgo.no-color", "--ginkgo.flake-attempts", "2", "--ginkgo.timeout", "2h",
	}, more...)
}

func (s kubernetesTests) output(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), s.program, args...)
	cmd.Env, cmd.Dir = s.env, t.TempDir()
	out, err := cmd.Output()
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		require.NoError(t, err, "%s\n%s", out, failed.Stderr)
	}
	require.NoError(t, err)
	return string(out)
}

// reportedLabels matches what a report appends to the name of a test.
var reportedLabels = regexp.MustCompile(` \[sig-node, [^][]*\]$`)

// run runs tests, and returns the names of those that passed and failed, in order.
func (s kubernetesTests) run(t *testing.T, names []string) (passed, failed []string) {
	t.Helper()
	slices.Sort(names)
	groups := make([][]string, atOnce)
	for i, name := range names { // neighbours are alike, and take as long
		groups[i%atOnce] = append(groups[i%atOnce], name)
	}
	var all errgroup.Group
	dir := t.TempDir()
	for i, names := range groups {
		all.Go(func() error {
			quoted := make([]string, len(names))
			for n, name := range names {
				quoted[n] = regexp.QuoteMeta(reportedLabels.ReplaceAllString(strings.TrimPrefix(name, "[It] "), "")) + "$"
			}
			log, err := os.Create(filepath.Join(dir, fmt.Sprintf("%d.log", i)))
			if err != nil {
				return err
			}
			defer log.Close()
			cmd := exec.CommandContext(t.Context(), s.program, s.flags(strings.Join(quoted, "|"), filepath.Join(dir, fmt.Sprintf("%d.xml", i)))...)
			cmd.Env, cmd.Dir, cmd.Stdout, cmd.Stderr = s.env, dir, log, log
			if err := cmd.Run(); cmd.ProcessState == nil || !cmd.ProcessState.Exited() {
				return err // otherwise the report says which tests failed
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	for i := range groups {
		for _, c := range readJUnit(t, filepath.Join(dir, fmt.Sprintf("%d.xml", i))) {
			switch c.Status {
			case "passed":
				passed = append(passed, c.Name)
			case "skipped":
			default:
				failed = append(failed, c.Name+": "+c.Failure.Message)
			}
		}
	}
	slices.Sort(passed)
	slices.Sort(failed)
	return passed, failed
}

// junitCase is one test in a report in JUnit's format.
type junitCase struct {
	Name    string `xml:"name,attr"`
	Status  string `xml:"status,attr"`
	Failure struct {
		Message string `xml:"message,attr"`
	} `xml:"failure"`
}

// readJUnit returns the tests of a report that ran, or would in a dry run.
func readJUnit(t *testing.T, file string) (cases []junitCase) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var report struct {
		Suites []struct {
			Cases []junitCase `xml:"testcase"`
		} `xml:"testsuite"`
	}
	require.NoError(t, xml.Unmarshal(text, &report))
	for _, s := range report.Suites {
		for _, c := range s.Cases {
			if strings.HasPrefix(c.Name, "[It]") && c.Status != "skipped" {
				cases = append(cases, c)
			}
		}
	}
	return cases
}
