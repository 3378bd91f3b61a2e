//go:build e2e && full

package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
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
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/images"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/herdpage"
)

// manual finds the commands in the documentation, and runs them as they stand there.
type manual struct {
	env   []string
	helm  string   // the folder of helm
	lines []string // commands in the documents
	ran   map[string]bool
	// replace has pairs: a placeholder in the documents, and its value here.
	replace []string
}

// manualPrograms matches the programs whose commands this scenario runs. The other commands in the
// documents build something, or are for the node itself and run in TestTheNodesCommands. A test of
// package deploy checks that this file has each command of a document.
var manualPrograms = regexp.MustCompile(`^(kubectl|helm|pod-pacemaker) [^.]`)

// manualNames are names of commands, without arguments to run them with.
var manualNames = []string{"pod-pacemaker run", "pod-pacemaker metrics-proxy", "kubectl exec", "helm test", "helm template", "helm --wait", "helm uninstall", "helm uninstall --no-hooks"}

// readManual finds the commands: the lines of code blocks without a language, and inline code.
func readManual(t *testing.T) (lines []string) {
	t.Helper()
	documents, err := filepath.Glob(repository("deploy", "*.md"))
	require.NoError(t, err)
	for _, document := range append(documents, repository("README.md")) {
		text, err := os.ReadFile(document)
		require.NoError(t, err)
		for i, block := range strings.Split(string(text), "```") {
			language, content, _ := strings.Cut(block, "\n")
			if i%2 == 1 && language != "" {
				continue
			}
			if i%2 == 0 {
				content = strings.Join(regexp.MustCompile("`[^`\n]+`").FindAllString(block, -1), "\n")
			}
			for line := range strings.Lines(content) {
				line = strings.TrimPrefix(strings.Trim(strings.TrimSpace(line), "`"), "$ ")
				if manualPrograms.MatchString(line) && !slices.Contains(lines, line) && !slices.Contains(manualNames, line) {
					lines = append(lines, line)
				}
			}
		}
	}
	require.Greater(t, len(lines), 20)
	return lines
}

func newManual(t *testing.T) *manual {
	t.Helper()
	cache, err := lab.CacheDir()
	require.NoError(t, err)
	progress := build.PlainProgress(os.Stderr)
	binaries, err := lab.Build(t.Context(), cache, progress)
	require.NoError(t, err)
	component, err := build.Find("helm")
	require.NoError(t, err)
	helm, err := build.Cache{Dir: cache, Progress: progress}.Component(t.Context(), component)
	require.NoError(t, err)
	own := t.TempDir()
	return &manual{
		lines: readManual(t), ran: map[string]bool{}, helm: helm,
		env: append(os.Environ(),
			"PATH="+strings.Join([]string{filepath.Dir(binaries.Kubectl), helm, repository("bin"), os.Getenv("PATH")}, ":"),
			"KUBECONFIG="+node.Kubeconfig, "KUBECACHEDIR="+filepath.Join(own, "kubectl"),
			"HELM_CACHE_HOME="+own, "HELM_CONFIG_HOME="+own, "HELM_DATA_HOME="+own,
		),
	}
}

// command returns a command of the documents, with additional arguments.
func (m *manual) command(ctx context.Context, t *testing.T, line, more string) *exec.Cmd {
	t.Helper()
	require.Contains(t, m.lines, line, "the command stands in no document")
	m.ran[line] = true
	cmd := exec.CommandContext(ctx, "sh", "-c", "exec "+strings.NewReplacer(m.replace...).Replace(line)+" "+more)
	cmd.Dir, cmd.Env = repository(), m.env
	return cmd
}

func (m *manual) runs(t *testing.T, line string) string { t.Helper(); return m.runsWith(t, line, "") }

func (m *manual) runsWith(t *testing.T, line, more string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	out, err := m.command(ctx, t, line, more).CombinedOutput()
	require.NoError(t, err, "%s %s\n%s", line, more, out)
	t.Logf("$ %s\n%s", line, out)
	return string(out)
}

// Every command of the manual works as it stands there, from the first install with Helm to the
// end, on a cluster without the CRDs.
func TestTheManual(t *testing.T) { followManual(t) }

// The same as TestTheManual on containerd 1.7, where pods are paced by refusal.
func TestManualOnContainerd17(t *testing.T) {
	onNode(t, "containerd@1.7", "")
	followManual(t)
}

func followManual(t *testing.T) {
	t.Helper()
	m := newManual(t)
	image, _, _ := strings.Cut(installImage, ":")
	m.env = append(m.env, "v=v0.1.0")
	importImage(t, image+":v0.1.0")
	importImage(t, image+":v0.2.0")
	in := &install{}
	values := in.values(t)
	m.replace = []string{"registry.example/pod-pacemaker", image, "startpolicy NAME", "startpolicy t1"}
	withoutCRDs(t)
	withoutShippedRights(t)
	t.Cleanup(func() {
		if t.Failed() {
			in.logPods(t)
		}
		for _, line := range []string{"helm uninstall " + installName + " -n " + installName + " --ignore-not-found", "kubectl delete namespace --ignore-not-found " + installName} {
			cmd := exec.CommandContext(context.Background(), "sh", "-c", line)
			cmd.Env = m.env
			out, err := cmd.CombinedOutput()
			assert.NoError(t, err, "%s: %s", line, out)
		}
	})

	m.runsWith(t, "kubectl apply -k deploy/base", "--dry-run=client -o name")
	m.runsWith(t, "kubectl delete -k deploy/base", "--dry-run=client --ignore-not-found")
	m.runs(t, "kubectl apply -f deploy/base/namespace.yaml")
	install := "helm install pod-pacemaker deploy/chart/pod-pacemaker --namespace pod-pacemaker --set-string image.repository=registry.example/pod-pacemaker,image.tag=$v"
	m.runsWith(t, install, "-f "+values)
	d := in.awaitDaemon(t)
	assert.Contains(t, m.runs(t, "kubectl -n pod-pacemaker get pods -o wide"), "1/1")
	assert.Contains(t, m.runs(t, "kubectl -n pod-pacemaker exec ds/pod-pacemaker -- pod-pacemaker status"), "none: no pod is held")
	assert.Contains(t, m.runs(t, "kubectl explain pacemakerconfig.spec"), "maxWait")
	m.looksWhetherItFits(t, in)
	m.beginsInShadow(t, d)

	assert.Contains(t, m.runs(t, "pod-pacemaker check deploy/samples/jvm-nodes.yaml --cores 8"), "4 at a time")
	m.runs(t, "kubectl apply -f deploy/samples/jvm-nodes.yaml")
	assert.Contains(t, m.runs(t, "pod-pacemaker check deploy/samples/policy-kube-throttler.yaml"), "200m of cpu running at a time")
	m.runs(t, "kubectl apply -f deploy/samples/policy-kube-throttler.yaml")
	assert.Contains(t, m.runs(t, "kubectl get startpolicies"), "t1")
	m.runs(t, "kubectl -n pod-pacemaker get leases -l pod-pacemaker.io/slots-of")
	assert.Contains(t, m.runs(t, "kubectl describe startpolicy NAME"), "t1")
	m.runs(t, "kubectl get events -A --field-selector reason=Unadmittable")
	kubectl(t, "label", "node", node.NodeName, "workload=jvm")
	t.Cleanup(func() { kubectlLater(t, "label", "node", node.NodeName, "workload-") })
	eventually(t, "the config is in force", func() bool { return d.status(t).Config.Name == "jvm-nodes" })
	m.whileAHerdStarts(t, d)

	old := pods(t, installName)
	m.runs(t, "kubectl -n pod-pacemaker delete pod POD")
	eventually(t, "another pod is ready", func() bool {
		now := pods(t, installName)
		return len(now) == 1 && now[0].UID != old[0].UID && allReady(t, installName, 1)
	})
	before := in.hook(t)
	m.runsWith(t, "helm upgrade pod-pacemaker deploy/chart/pod-pacemaker --namespace pod-pacemaker --reset-then-reuse-values --set-string image.tag=$v", "--set-string image.tag=v0.2.0")
	eventually(t, "the next version is ready", func() bool {
		now := pods(t, installName)
		return len(now) == 1 && strings.HasSuffix(now[0].Spec.Containers[0].Image, ":v0.2.0") && allReady(t, installName, 1)
	})
	in.hook(t)
	assert.Equal(t, before.Mode(), in.hook(t).Mode())
	eventually(t, "its config is still in force", func() bool {
		s, err := d.admin.Status(t.Context())
		return err == nil && s.Config.Name == "jvm-nodes"
	})
	m.switchesTheRoom(t, d)

	m.runs(t, "helm uninstall pod-pacemaker --namespace pod-pacemaker")
	eventually(t, "nothing is left on the host", func() bool { return len(in.files(t)) == 0 })
	assertNoRoom(t)
	kubectl(t, "get", "pacemakerconfig", "jvm-nodes") // Helm leaves it
	m.runsWith(t, install, "-f "+values)
	d = in.awaitDaemon(t)
	eventually(t, "the remaining config is in force", func() bool { return d.status(t).Config.Name == "jvm-nodes" })
	m.runs(t, "kubectl -n pod-pacemaker delete daemonset pod-pacemaker --cascade=foreground")
	m.runs(t, "helm uninstall pod-pacemaker --namespace pod-pacemaker")
	eventually(t, "nothing is left on the host again", func() bool { return len(in.files(t)) == 0 })
	assertNoRoom(t)
	m.runs(t, "kubectl delete namespace pod-pacemaker")
	m.runs(t, "kubectl delete -k deploy/crds")
	m.checksFiles(t)
	assertNothingLeft(t)
	for _, line := range m.lines {
		assert.True(t, m.ran[line], "no scenario runs this command of the documents: %s", line)
	}
}

// switchesTheRoom makes the chart remove the waiting room from the host and install it again.
func (m *manual) switchesTheRoom(t *testing.T, d *daemon) {
	t.Helper()
	const on = "helm upgrade pod-pacemaker deploy/chart/pod-pacemaker --namespace pod-pacemaker --reset-then-reuse-values --set waitingRoom.mode=auto"
	const off = "helm upgrade pod-pacemaker deploy/chart/pod-pacemaker --namespace pod-pacemaker --reset-then-reuse-values --set waitingRoom.mode=off"
	there := func() (n int) {
		for _, file := range roomFiles() {
			if _, err := os.Stat(file); err == nil {
				n++
			}
		}
		return n
	}
	m.runs(t, off)
	eventually(t, "the waiting room is off the host", func() bool {
		s, err := d.admin.Status(t.Context())
		return err == nil && !s.Room.Wanted && there() == 0
	})
	m.runs(t, on)
	eventually(t, "the waiting room is installed", func() bool {
		s, err := d.admin.Status(t.Context())
		return err == nil && s.Room.Installed && there() == len(roomFiles())
	})
	eventually(t, "the daemon is ready", func() bool { return allReady(t, installName, 1) })
}

// looksWhetherItFits runs preflight on the host and as a Job of the chart.
func (m *manual) looksWhetherItFits(t *testing.T, in *install) {
	t.Helper()
	out := m.runsWith(t, "pod-pacemaker preflight", strings.Join([]string{
		"--node-name", node.NodeName, "--kubeconfig", node.Kubeconfig, "--nri-socket", node.NRISocket, "--run-dir", in.dir + "/run",
		"--gate-path", in.dir + "/bin/pacemaker-gate", "--http", chartAddress, "--cni-conf-dir=",
	}, " "))
	assert.Contains(t, out, "ok       nri      ")
	assert.Contains(t, out, "ok       gate     ")
	assert.Contains(t, out, "ok       rights   ")
	out = m.runs(t, "kubectl -n pod-pacemaker exec ds/pod-pacemaker -- pod-pacemaker preflight")
	assert.Contains(t, out, "ok       flags    those of the daemon in this pod")
	assert.Contains(t, out, "ok       nri      "+node.NRISocket)
	assert.Contains(t, out, "ok       gate     "+in.dir+"/bin/pacemaker-gate")
	m.runs(t, "helm test pod-pacemaker --namespace pod-pacemaker")
	out = m.runs(t, "kubectl -n pod-pacemaker logs job/pod-pacemaker-preflight")
	assert.Contains(t, out, "ok       rights   all that a daemon with these flags needs")
	assert.Contains(t, out, "ok       gate     ")
	// The Job's pod stays until the next test of the release, and the rest of the scenario counts
	// the pods of the namespace.
	kubectl(t, "-n", installName, "delete", "job", "pod-pacemaker-preflight")
}

// beginsInShadow applies the first config, enforces it and switches it off, as the quickstart does.
func (m *manual) beginsInShadow(t *testing.T, d *daemon) {
	t.Helper()
	mode := func(want v1alpha1.Mode) {
		eventually(t, "the mode is "+string(want), func() bool {
			s := d.status(t)
			return s.Config.Name == "every-node" && s.Config.Mode == want
		})
	}
	m.runs(t, "kubectl apply -f deploy/samples/every-node.yaml")
	mode(v1alpha1.ModeShadow)
	eventually(t, "the PacemakerNode shows the mode", func() bool { return strings.Contains(kubectl(t, "get", "pacemakernodes"), "Shadow") })
	m.replace = append([]string{"status NODE", "status " + node.NodeName, "costs NODE", "costs " + node.NodeName}, m.replace...)
	assert.Regexp(t, `mode +Shadow`, m.runs(t, "kubectl pacemaker status NODE"))
	m.runs(t, `kubectl patch pacemakerconfig every-node --type merge -p '{"spec":{"mode":"Enforce"}}'`)
	mode(v1alpha1.ModeEnforce)
	m.startsAHerd(t, d)
	m.runs(t, `kubectl patch pacemakerconfig every-node --type merge -p '{"spec":{"mode":"Disabled"}}'`)
	mode(v1alpha1.ModeDisabled)
	kubectl(t, "delete", "pacemakerconfig", "every-node")
}

// startsAHerd starts the quickstart's herd, with an image of this node instead of one from a
// registry.
func (m *manual) startsAHerd(t *testing.T, d *daemon) {
	t.Helper()
	herd, err := images.QuickstartHerd(repository())
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "herd.yaml")
	require.NoError(t, os.WriteFile(file, herd, 0o600))
	was := m.replace
	m.replace = []string{"deploy/quickstart-herd.yaml", file}
	m.runs(t, "kubectl apply -f deploy/quickstart-herd.yaml")
	m.replace = was
	eventually(t, "pods of the herd wait", func() bool { return len(d.status(t).Waiting) >= 10 })
	assert.Contains(t, m.runs(t, "kubectl get pods"), "ContainerCreating")
	m.runs(t, `kubectl patch pacemakerconfig every-node --type merge -p '{"spec":{"throttleConfig":{"maxConcurrent":{"perCore":"0.25"}}}}'`)
	m.runs(t, "kubectl delete deployment herd")
	eventually(t, "the herd is gone", func() bool { return len(d.status(t).Waiting) == 0 && len(pods(t, "default")) == 0 })
}

// whileAHerdStarts runs the manual's commands about a starting herd, and admits the herd by the
// kill switch.
func (m *manual) whileAHerdStarts(t *testing.T, d *daemon) {
	t.Helper()
	ns := namespace(t)
	const herd = 6
	deploy(t, ns, "jvm", herd, herdPod(8))
	eventually(t, "all but one wait", func() bool { return len(d.status(t).Waiting) == herd-1 })
	waiting := d.status(t).Waiting[herd-2].Name // the last
	m.replace = append([]string{"NAMESPACE/POD", ns + "/" + waiting, "POD", pods(t, installName)[0].Name, "default/web-7d9c-x2x", ns + "/" + waiting}, m.replace...)
	inPod := "-n " + installName + " exec ds/" + installName + " -- pod-pacemaker "
	for _, line := range []string{"pod-pacemaker why NAMESPACE/POD", "pod-pacemaker why default/web-7d9c-x2x"} {
		assert.Contains(t, m.onNode(t, line, inPod), waiting+": waiting ")
	}
	for _, line := range []string{"pod-pacemaker status", "pod-pacemaker status -o json", "kubectl -n pod-pacemaker exec POD -- pod-pacemaker status"} {
		var out string
		if strings.HasPrefix(line, "kubectl") {
			out = m.runs(t, line)
		} else {
			out = m.onNode(t, line, inPod)
		}
		assert.Contains(t, out, waiting)
	}
	assert.Contains(t, m.runs(t, "kubectl pacemaker why NAMESPACE/POD"), waiting+": waiting ")
	eventually(t, "the PacemakerNode shows the waiting pods", func() bool {
		return regexp.MustCompile(`jvm-nodes +Enforce +True +[1-9]`).MatchString(kubectl(t, "get", "pacemakernodes"))
	})
	m.runs(t, "kubectl get pacemakernodes")
	eventually(t, "the status of the config counts the node", func() bool {
		return regexp.MustCompile(`jvm-nodes +.* 1 +True +False`).MatchString(kubectl(t, "get", "pacemakerconfigs"))
	})
	m.runs(t, "kubectl get pacemakerconfigs")
	assert.Regexp(t, `jvm-nodes +Enforce +true +[1-9]`, m.runs(t, "kubectl pacemaker status"))
	assert.Regexp(t, `jvm-nodes +Enforce +true +[1-9]`, m.runs(t, "kubectl pacemaker top"))
	shown := m.runs(t, "kubectl pacemaker status NODE")
	still := d.status(t).Waiting // by refusal, the last may have started meanwhile: kubelet's next try decides
	assert.NotEmpty(t, still)
	for _, pod := range still {
		assert.Contains(t, shown, pod.Name)
	}
	eventually(t, "an event says why it waits", func() bool {
		return strings.Contains(kubectl(t, "-n", ns, "describe", "pod", waiting), "WaitingToStart")
	})
	m.runsWith(t, "kubectl describe pod", "-n "+ns+" "+waiting)
	assert.Contains(t, m.onNode(t, "pod-pacemaker admit NAMESPACE/POD", inPod), "admitted after ")
	m.forwards(t)
	m.showsPods(t, ns, herd)
	assert.Contains(t, m.onNode(t, "pod-pacemaker costs", inPod), "learned on ")
	m.runs(t, `kubectl patch pacemakerconfig jvm-nodes --type merge -p '{"spec":{"mode":"Disabled"}}'`)
	eventually(t, "the kill switch admits all pods, by containerd", func() bool { return len(begun(t, ns)) == herd })
	assert.Empty(t, d.status(t).Waiting)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, herd) })
	m.runs(t, "kubectl apply -f deploy/samples/all-off.yaml")
	eventually(t, "the kill switch of all nodes is in force", func() bool { return d.status(t).Config.Name == "0-all-off" })
	m.runs(t, "kubectl delete -f deploy/samples/all-off.yaml")
	eventually(t, "the other config is in force again", func() bool { return d.status(t).Config.Name == "jvm-nodes" })
	m.onNode(t, "pod-pacemaker off --for 1h", inPod)
	assert.NotZero(t, d.status(t).Config.OffUntil)
	m.onNode(t, "pod-pacemaker on", inPod)
	assert.Zero(t, d.status(t).Config.OffUntil)
}

// onNode runs a command that the manual has for the node. It runs in the daemon's pod there.
func (m *manual) onNode(t *testing.T, line, inPod string) string {
	t.Helper()
	m.ran[line] = true
	own := strings.TrimPrefix(strings.NewReplacer(m.replace...).Replace(line), "pod-pacemaker ")
	out, err := node.Kubectl(t.Context(), strings.Fields(inPod+own)...)
	require.NoError(t, err, "%s", out)
	t.Logf("$ %s\n%s", line, out)
	return string(out)
}

// forwards opens the page as the manual says, and requests it.
func (m *manual) forwards(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	const line = "kubectl -n pod-pacemaker port-forward POD 19464"
	address := freeAddress(t)
	_, port, _ := strings.Cut(address, ":")
	was := m.replace
	m.replace = append([]string{"POD 19464", pods(t, installName)[0].Name + " " + port + ":19464"}, m.replace...)
	cmd := m.command(ctx, t, line, "")
	m.replace = was
	require.NoError(t, cmd.Start())
	eventually(t, "the page is there", func() bool {
		reply, err := http.Get("http://" + address + "/") //nolint:noctx // of this machine
		if err != nil {
			return false
		}
		return reply.Body.Close() == nil && reply.StatusCode == http.StatusOK
	})
	cancel()
	_ = cmd.Wait() // killed
}

// showsPods opens the page with pods of a node, and checks its rows for the herd.
func (m *manual) showsPods(t *testing.T, ns string, herd int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	was := m.replace
	m.replace = append([]string{"NODE", node.NodeName}, m.replace...)
	cmd := m.command(ctx, t, "kubectl pacemaker page NODE", "")
	m.replace = was
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	address := ""
	for lines := bufio.NewScanner(out); address == "" && lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "http://127.0.0.1:") {
			address = strings.TrimSuffix(lines.Text(), "?pods")
		}
	}
	require.NotEmpty(t, address, "the address of the page in the output")
	get := func(path string) []byte {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, address+path, http.NoBody)
		require.NoError(t, err)
		reply, err := http.DefaultClient.Do(request)
		require.NoError(t, err)
		defer reply.Body.Close()
		require.Equal(t, http.StatusOK, reply.StatusCode, path)
		body, err := io.ReadAll(reply.Body)
		require.NoError(t, err)
		return body
	}
	assert.Contains(t, string(get("")), "<title>pod-pacemaker</title>")
	var status admin.Overview
	require.NoError(t, json.Unmarshal(get("status.json"), &status))
	assert.Equal(t, node.NodeName, status.Node)
	var rows []herdpage.Row
	require.NoError(t, json.Unmarshal(get("pods.json"), &rows))
	of, waiting := 0, 0
	for _, row := range rows {
		if row.Namespace != ns {
			continue
		}
		of++
		assert.Less(t, time.Since(row.Accepted), 10*time.Minute)
		if row.Started.IsZero() {
			waiting++
		}
	}
	assert.Equal(t, herd, of, "a row for each pod")
	assert.Positive(t, waiting)
	require.NoError(t, cmd.Process.Signal(os.Interrupt))
	assert.NoError(t, cmd.Wait(), "the page ends by Ctrl-C")
}

// checksFiles runs the manual's commands that check files.
func (m *manual) checksFiles(t *testing.T) {
	t.Helper()
	file := repository("crd", "testdata", "valid", "as-in-pod-pacemaker.yaml")
	m.replace = append([]string{"pacemakerconfig.yaml", file, " FILE", " " + file}, m.replace...)
	for _, line := range []string{"pod-pacemaker check pacemakerconfig.yaml", "pod-pacemaker check FILE"} {
		assert.Contains(t, m.runs(t, line), "valid")
	}
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	theirs := filepath.Join(t.TempDir(), "theirs.yaml")
	require.NoError(t, os.WriteFile(theirs, bytes.Replace(text, []byte("pod-pacemaker.io/v1alpha1"), []byte("woehrl.net/v1alpha"), 1), 0o600))
	m.replace = append([]string{"podpacemaker.yaml", theirs, ">pacemakerconfig.yaml", ""}, m.replace...)
	assert.Contains(t, m.runs(t, "pod-pacemaker convert podpacemaker.yaml >pacemakerconfig.yaml"), "apiVersion: pod-pacemaker.io/v1alpha1\n")
}

// values writes the values that this node needs in addition to the manual's.
func (in *install) values(t *testing.T) (file string) {
	t.Helper()
	dir, err := os.MkdirTemp(node.Dir, "in")
	require.NoError(t, err)
	in.dir = dir
	text, err := yaml.Marshal(map[string]any{
		"image":      map[string]any{"pullPolicy": "Never"},
		"nri":        map[string]any{"socket": node.NRISocket},
		"containerd": map[string]any{"state": filepath.Join(node.Dir, "containerd", "state")},
		"paths":      map[string]any{"gate": dir + "/bin", "run": dir + "/run", "state": dir + "/state"},
		"apiServer":  map[string]any{"host": lab.NodeIP, "port": "6443"},

		"waitingRoom": defaultRoom(),
	})
	require.NoError(t, err)
	removeRoomLater(t)
	file = filepath.Join(t.TempDir(), "values.yaml")
	require.NoError(t, os.WriteFile(file, text, 0o600))
	return file
}

// awaitDaemon waits until the chart's daemon paces pods.
func (in *install) awaitDaemon(t *testing.T) *daemon {
	t.Helper()
	eventually(t, "the DaemonSet's pod is ready", func() bool { return allReady(t, installName, 1) })
	d := &daemon{runDir: filepath.Join(in.dir, "run")}
	d.admin = admin.NewClient(filepath.Join(d.runDir, "admin.sock"))
	eventually(t, "the daemon is ready", func() bool {
		s, err := d.admin.Status(t.Context())
		return err == nil && s.Ready
	})
	return d
}

// withoutCRDs removes the CRDs of all scenarios until the test ends.
func withoutCRDs(t *testing.T) {
	t.Helper()
	crds := repository("deploy", "crds")
	t.Cleanup(func() {
		kubectlLater(t, "delete", "--ignore-not-found", "-k", crds) // and all objects
		kubectlLater(t, "apply", "--server-side", "-k", crds)
	})
	kubectl(t, "delete", "-k", crds)
}

func kubectlLater(t *testing.T, args ...string) {
	t.Helper()
	out, err := node.Kubectl(context.Background(), args...)
	assert.NoError(t, err, "%s", out)
}

// assertNothingLeft checks that nothing of the release is in the cluster.
func assertNothingLeft(t *testing.T) {
	t.Helper()
	for _, kind := range []string{"clusterroles", "clusterrolebindings", "crds", "validatingadmissionpolicies", "namespaces"} {
		var left []string
		eventually(t, "no "+kind+" are left", func() bool {
			left = left[:0]
			for name := range strings.FieldsSeq(kubectl(t, "get", kind, "-o", "name")) {
				if strings.Contains(name, "pacemaker") {
					left = append(left, name)
				}
			}
			return len(left) == 0
		})
	}
}

// The manual's commands for the node itself put their files where the node's programs find them.
// They run in a file system in which /etc and /opt are empty.
func TestTheNodesCommands(t *testing.T) {
	text, err := os.ReadFile(repository("deploy", "install.md"))
	require.NoError(t, err)
	systemd := ""
	var script strings.Builder
	script.WriteString("set -ex\nmount -t tmpfs none /opt\nmount -t tmpfs none /etc\nmkdir -p /etc/containerd /etc/systemd/system\n")
	script.WriteString(`printf 'version = 3\nimports = ["/etc/containerd/conf.d/*.toml"]\n' >/etc/containerd/config.toml` + "\n")
	ran := 0
	for _, line := range regexp.MustCompile(`(?m)^ *((?:install -\S+|grep -n|containerd config|systemctl) .*)$`).FindAllStringSubmatch(string(text), -1) {
		ran++
		if strings.HasPrefix(line[1], "systemctl") {
			systemd += line[1] + "\n" // there is no systemd of this file system to ask
			continue
		}
		script.WriteString(line[1] + "\n")
	}
	require.GreaterOrEqual(t, ran, 8)
	for line := range strings.Lines(systemd) {
		assert.Contains(t, []string{"systemctl restart containerd\n", "systemctl enable --now pod-pacemaker\n"}, line)
	}
	script.WriteString("systemd-analyze verify --man=no /etc/systemd/system/pod-pacemaker.service\n")
	script.WriteString("/opt/pod-pacemaker/bin/pod-pacemaker check /etc/pod-pacemaker/config.yaml\n")
	cache, err := lab.CacheDir()
	require.NoError(t, err)
	binaries, err := lab.Build(t.Context(), cache, build.PlainProgress(os.Stderr))
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "unshare", "--mount", "bash", "-o", "pipefail", "-c", script.String())
	cmd.Dir = repository()
	cmd.Env = append(os.Environ(), fmt.Sprintf("PATH=%s:%s", filepath.Dir(binaries.Containerd), os.Getenv("PATH")))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	assert.Contains(t, string(out), "disable = false", "what containerd would do after its restart")
	assert.Contains(t, string(out), "valid")
	t.Logf("%s", out)
}
