//go:build e2e && full

package e2e

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// Plain helm uninstall, with the waiting room on as by default and 20 pods waiting, leaves no file on the host,
// and all pods start.
func TestHelmUninstallLeavesNothing(t *testing.T) {
	const waiting = 20
	importImage(t, installImage)
	m, in := newManual(t), &install{}
	helm := func(ctx context.Context, args ...string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, filepath.Join(m.helm, "helm"), args...)
		cmd.Env, cmd.Dir = m.env, repository()
		out, err := cmd.CombinedOutput()
		assert.NoError(t, err, "%v: %s", args, out)
	}
	withoutShippedRights(t)
	t.Cleanup(func() {
		if t.Failed() {
			in.logPods(t)
		}
		helm(context.Background(), "uninstall", installName, "--namespace", installName, "--ignore-not-found")
		kubectlLater(t, "delete", "namespace", "--ignore-not-found", installName)
	})
	kubectl(t, "apply", "-f", repository("deploy", "base", "namespace.yaml"))
	image, tag, _ := strings.Cut(installImage, ":")
	helm(t.Context(), "install", installName, "deploy/chart/pod-pacemaker", "--namespace", installName, "-f", in.values(t),
		"--set", "image.repository="+image+",image.tag="+tag+",crds.install=false")
	d := in.awaitDaemon(t)
	d.awaitRoom(t)

	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}}}")
	ns := namespace(t)
	slow := newLatch(t)
	createPod(t, ns, "slow", herdPod(0, slow.holds))
	eventually(t, "the pod holds the slot", func() bool { return len(d.status(t).Starting) == 1 })
	deploy(t, ns, "herd", waiting, herdPod(0))
	eventually(t, "the herd waits", func() bool { return len(d.status(t).Waiting) == waiting })

	began := time.Now()
	helm(t.Context(), "uninstall", installName, "--namespace", installName)
	figure(t, "helm uninstall took %s with %d pods waiting", time.Since(began).Round(time.Second), waiting)
	assert.Empty(t, in.files(t), "files of the daemon on the host")
	assertNoRoom(t)
	eventually(t, "the herd is ready", func() bool { return readyOf(t, ns, "herd") == waiting })
	figure(t, "and %s after it began, all were ready", time.Since(began).Round(time.Second))
}
