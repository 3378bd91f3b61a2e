//go:build e2e && full

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// The DaemonSet of deploy/base rolls out, with only the folders of the node, the name of the image and the address of the
// API server replaced. It paces pods with the rights that stand beside it, and takes its hook and its waiting room from the
// host when it is deleted.
func TestTheBaseRollsOut(t *testing.T) {
	importImage(t, installImage)
	dir, err := os.MkdirTemp(node.Dir, "base")
	require.NoError(t, err)
	removeRoomLater(t)
	configs, plugins := roomFolders()
	text := strings.NewReplacer(
		"path: /run/containerd/", "path: "+filepath.Join(node.Dir, "containerd", "state")+"/",
		"path: /var/run/nri", "path: "+filepath.Dir(node.NRISocket),
		"/nri.sock", "/"+filepath.Base(node.NRISocket),
		"/run/pod-pacemaker", filepath.Join(dir, "run"), "/var/lib/pod-pacemaker", filepath.Join(dir, "state"),
		"/opt/pod-pacemaker/bin", filepath.Join(dir, "bin"), "/etc/cni/net.d", configs, "/opt/cni/bin", plugins,
	).Replace(kubectl(t, "kustomize", repository("deploy", "base")))
	text = regexp.MustCompile(`image: pod-pacemaker:\S+`).ReplaceAllString(text, "image: "+installImage)
	// The lab has no proxy for the address of the Service.
	text = regexp.MustCompile(`(?m)^( *)- name: NODE_NAME$`).ReplaceAllString(text, strings.Join([]string{
		"$1- name: KUBERNETES_SERVICE_HOST", "$1  value: " + lab.NodeIP, "$1- name: KUBERNETES_SERVICE_PORT", `$1  value: "6443"`, "$0",
	}, "\n"))
	// The CRDs are shared by all scenarios.
	objects := slices.DeleteFunc(strings.Split(text, "\n---\n"), func(object string) bool { return strings.Contains(object, "\nkind: CustomResourceDefinition\n") })
	manifest := filepath.Join(t.TempDir(), "base.yaml")
	require.NoError(t, os.WriteFile(manifest, []byte(strings.Join(objects, "\n---\n")), 0o600))
	in := &install{dir: dir, manifest: manifest}
	t.Cleanup(func() {
		if t.Failed() {
			in.logPods(t)
		}
		out, err := node.Kubectl(context.Background(), "delete", "--ignore-not-found", "-f", manifest)
		assert.NoError(t, err, "%s", out)
	})
	kubectl(t, "apply", "--server-side", "--force-conflicts", "-f", manifest)
	kubectl(t, "-n", installName, "rollout", "status", "ds/"+installName, "--timeout", testTimeout.String())

	d := &daemon{admin: admin.NewClient(filepath.Join(dir, "run", "admin.sock"))}
	eventually(t, "the daemon is ready, with its waiting room", func() bool {
		s, err := d.admin.Status(t.Context())
		return err == nil && s.Ready && s.Room.Installed
	})
	in.assertHook(t)
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}}}")
	ns := namespace(t)
	deploy(t, ns, "herd", 4, herdPod(0.5))
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 4) })
	assert.Equal(t, 1, mostStarting(t, lives(t, ns)), "pods between the start of their process and ready")

	kubectl(t, "-n", installName, "delete", "ds", installName)
	eventually(t, "no hook is left on the host", func() bool {
		_, err := os.Stat(filepath.Join(dir, "bin", "pacemaker-gate"))
		return os.IsNotExist(err)
	})
	assertNoRoom(t)
}
