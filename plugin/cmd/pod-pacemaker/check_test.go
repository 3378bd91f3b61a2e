package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const twoAtATime = `apiVersion: pod-pacemaker.io/v1alpha1
kind: PacemakerConfig
metadata: {name: two-at-a-time}
spec:
  throttleConfig:
    maxConcurrent: {value: 2}
`

func file(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

func TestCheckSaysWhatAValidFileMeans(t *testing.T) {
	t.Parallel()
	const head = "apiVersion: pod-pacemaker.io/v1alpha1\nkind: PacemakerConfig\nmetadata: {name: big}\n"
	for _, c := range []struct{ spec, want string }{
		{
			"spec: {throttleConfig: {maxConcurrent: {value: 2}}}",
			"valid: PacemakerConfig \"big\", for every node, priority 0\n" +
				"Starts on a node with 96 cores: 2 at a time; a pod may start over the limit after 4m, a start counts for 5m at most.\n",
		},
		{
			"spec: {nodeSelector: {zone: a, disk: ssd}, priority: 7, maxWait: 90s, throttleConfig: {maxConcurrent: {perCore: \"0.5\"}, rateLimit: {fillFactor: 500ms, burst: 5}}}",
			"valid: PacemakerConfig \"big\", for nodes with disk=ssd, zone=a, priority 7\n" +
				"Starts on a node with 96 cores: 48 at a time, one every 500ms (5 at once after a quiet time); a pod may start over the limit after 1m30s, a start counts for 5m at most.\n",
		},
		{
			"spec: {maxWait: 301s, throttleConfig: {maxConcurrent: {value: 2}}}",
			"valid: PacemakerConfig \"big\", for every node, priority 0\n" +
				"Starts on a node with 96 cores: 2 at a time; a pod may start over the limit after 5m1s, a start counts for 5m at most.\n" +
				"Warning: with a maxWait of 5m1s, helm gives up after 5m, and a Deployment after its progressDeadlineSeconds (10m), while pods wait.\n",
		},
		{
			"spec: {startTimeout: 15m, throttleConfig: {maxConcurrent: {value: 2}}}",
			"valid: PacemakerConfig \"big\", for every node, priority 0\n" +
				"Starts on a node with 96 cores: 2 at a time; a pod may start over the limit after 4m, a start counts for 15m at most.\n" +
				"Warning: behind starts that take longer than the maxWait of 4m, one start at a time is over the limit all the time; only a longer maxWait avoids that.\n",
		},
		{
			"spec: {startAfter: [{daemonSet: kube-system/cilium}, {daemonSet: rook/csi, timeout: 90s, again: true}, {namespace: vault, podSelector: {matchLabels: {app: agent}}}]}",
			"valid: PacemakerConfig \"big\", for every node, priority 0\n" +
				"Starts on a node with 96 cores: after a boot, pods wait until each of these is ready: kube-system/cilium, for at most 2m; rook/csi, for at most 1m30s each time; vault (app=agent), for at most 2m.\n" +
				"Warning: startAfter names pods that the exemptions do not, so they wait for themselves unless they are static or critical: rook/csi; vault (app=agent).\n",
		},
		{
			"spec: {mode: Shadow, throttleConfig: {maxConcurrent: {value: 2}}, startAfter: [{daemonSet: vault/csi}], exemptions: {namespaces: [vault]}}",
			"valid: PacemakerConfig \"big\", for every node, priority 0\n" +
				"Starts on a node with 96 cores: 2 at a time; a pod may start over the limit after 4m, a start counts for 5m at most; after a boot, pods wait until each of these is ready: vault/csi, for at most 2m.\n" +
				"Its mode is Shadow: no pod is held, but the daemon reports what Enforce would do.\n",
		},
		{
			"spec: {throttleConfig: {cpu: {maxLoad: \"0.8\"}, io: {maxLoad: 1}, pressure: {cpu: {some: 1}}}}",
			"valid: PacemakerConfig \"big\", for every node, priority 0\n" +
				"Starts on a node with 96 cores: cpu below 0.8%, iowait below 1%, pressure.cpu.some below 1% (where cpu is above 70%); a pod may start over the limit after 4m, a start counts for 5m at most.\n" +
				"Warning: no node with work to do has cpu below 0.8%: limits are in percent, like 80.\n",
		},
		{
			"spec: {}",
			"valid: PacemakerConfig \"big\", for every node, priority 0\nIt sets no limit: no pod is held.\n",
		},
	} {
		path := file(t, head+c.spec+"\n")
		assert.Equal(t, path+": "+c.want, says(t, "check", path, "--cores", "96"))
	}
}

func TestCheckNamesEveryFault(t *testing.T) {
	t.Parallel()
	path := file(t, strings.Replace(twoAtATime, "{value: 2}", "{value: 0}", 1)+
		"    rateLimit: {fillFactor: soon, bursts: 3}\n  maxWait: 100h\n")
	stderr := fails(t, exitInvalid, "check", path)
	for _, field := range []string{
		"spec.maxWait", "spec.throttleConfig.maxConcurrent.value", "spec.throttleConfig.rateLimit.fillFactor", "spec.throttleConfig.rateLimit.bursts",
	} {
		assert.Contains(t, stderr, "pod-pacemaker: "+path+": "+field+": ")
	}
	assert.Equal(t, 4, strings.Count(stderr, "\n"), stderr)
}

func TestCheckNamesConvertForObjectsOfOtherProjects(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]string{
		"apiVersion: woehrl.net/v1alpha\n":  "must be pod-pacemaker.io/v1alpha1: 'pod-pacemaker convert' translates objects of other projects\n",
		"apiVersion: pod-pacemaker.io/v1\n": "must be pod-pacemaker.io/v1alpha1\n",
		"":                                  "must be pod-pacemaker.io/v1alpha1\n",
	} {
		_, _, stderr := call(t, "check", file(t, strings.Replace(twoAtATime, "apiVersion: pod-pacemaker.io/v1alpha1\n", version, 1)))
		assert.Contains(t, stderr, want)
	}
}

func TestCheckReportsTheFaultsOfAllDocumentsOfAllFiles(t *testing.T) {
	t.Parallel()
	const policy = "---\napiVersion: pod-pacemaker.io/v1alpha1\nkind: StartPolicy\nmetadata: {name: z}\nspec: {selector: {terms: [{podSelector: {}}]}, limits: {running: {pods: -1}}}\n"
	other := strings.Replace(twoAtATime, "two-at-a-time", "other", 1)
	valid := file(t, twoAtATime+"---\n"+other)
	bad := file(t, twoAtATime+policy+"---\nspec: [\n---\n"+strings.Replace(other, "value: 2", "value: 0", 1)+"---\n"+twoAtATime)
	list := file(t, "apiVersion: v1\nkind: List\nmetadata: {resourceVersion: \"\"}\nitems:\n- "+strings.ReplaceAll(strings.TrimSpace(twoAtATime), "\n", "\n  ")+
		"\n- {apiVersion: v1, kind: Pod}\n")
	code, stdout, stderr := call(t, "check", valid, bad, "/nowhere", t.TempDir(), list)
	assert.Equal(t, exitInvalid, code)
	for _, want := range []string{
		valid + ": valid: PacemakerConfig \"two-at-a-time\"", valid + ": valid: PacemakerConfig \"other\"",
		bad + ": valid: PacemakerConfig \"two-at-a-time\"", list + ": valid: PacemakerConfig \"two-at-a-time\"",
	} {
		assert.Contains(t, stdout, want)
	}
	assert.Equal(t, 4, strings.Count(stdout, "valid: "), stdout)
	for _, want := range []string{
		bad + ": document 2, StartPolicy \"z\": spec.limits.running.pods: ",
		bad + ": document 3: invalid PacemakerConfig: not YAML: ",
		bad + ": document 4, PacemakerConfig \"other\": spec.throttleConfig.maxConcurrent.value: ",
		bad + ": document 5, PacemakerConfig \"two-at-a-time\": metadata.name: Duplicate value: ",
		"read configuration: open /nowhere: ", "is a directory\n",
		list + ": document 2, Pod \"\": apiVersion: ", list + ": document 2, Pod \"\": kind: ",
	} {
		assert.Contains(t, stderr, want)
	}
	assert.Equal(t, 8, strings.Count(stderr, "\n"), stderr)
}

func TestOneSignalEndsACheckOfStandardInput(t *testing.T) {
	t.Parallel()
	for _, sent := range []os.Signal{syscall.SIGINT, syscall.SIGTERM} {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		t.Cleanup(cancel)
		cmd := exec.CommandContext(ctx, os.Args[0], "check", "-")
		cmd.Env = append(os.Environ(), asProgram+"=1")
		in, err := cmd.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		_, err = in.Write(bytes.Repeat([]byte("#"), 1<<20)) // more than a pipe holds, so it reads
		require.NoError(t, err)
		require.NoError(t, cmd.Process.Signal(sent))
		require.EqualError(t, cmd.Wait(), "signal: "+sent.String())
	}
}

func TestCheckReadsStandardInput(t *testing.T) {
	t.Parallel()
	var out, errs written
	code := run(t.Context(), []string{"check", "-", "--cores", "4"}, strings.NewReader(twoAtATime), &out, &errs)
	assert.Zero(t, code)
	assert.Contains(t, out.String(), "standard input: valid: PacemakerConfig \"two-at-a-time\"")

	var wrong written
	code = run(t.Context(), []string{"check", "-"}, strings.NewReader("kind: Pod\n"), &out, &wrong)
	assert.Equal(t, exitInvalid, code)
	assert.Empty(t, errs.String())
	assert.Contains(t, wrong.String(), "pod-pacemaker: standard input: kind: ")
}
