//go:build e2e && full

package e2e

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// With metricsProxy.why, a developer who may only get the pods of one namespace, and has the role for that, learns why
// a pod there waits, and nothing about the pods of another namespace. The API server passes the token on in the header
// for that alone.
func TestWhyThroughTheAPIServer(t *testing.T) {
	importImage(t, installImage)
	in := installChart(t, map[string]any{"metricsProxy": map[string]any{"enabled": true, "why": true}})
	eventually(t, "the DaemonSet's pod is ready", func() bool { return allReady(t, installName, 1) })
	d := &daemon{admin: admin.NewClient(filepath.Join(in.dir, "run", "admin.sock"))}
	d.configure(t, "{throttleConfig: {maxConcurrent: {value: 1}, noProgressAfter: 0s}}")
	ns, other := namespace(t), namespace(t)
	slow := newLatch(t)
	createPod(t, ns, "first", herdPod(0.1, slow.holds))
	eventually(t, "the first pod starts", func() bool { return len(d.status(t).Starting) == 1 })
	createPod(t, ns, "second", herdPod(0.1))
	createPod(t, other, "third", herdPod(0.1))
	eventually(t, "the others wait", func() bool { return len(d.status(t).Waiting) == 2 })

	kubectl(t, "create", "serviceaccount", "developer", "-n", ns)
	developer := ns + ":developer"
	t.Cleanup(func() {
	})
	kubectl(t, "create", "rolebinding", "developer-asks-why", "-n", installName, "--role", installName+"-why", "--serviceaccount", developer)
	kubectl(t, "create", "role", "developer", "-n", ns, "--verb=get", "--resource=pods")
	kubectl(t, "create", "rolebinding", "developer", "-n", ns, "--role=developer", "--serviceaccount", developer)
	reply, err := node.Client().CoreV1().ServiceAccounts(ns).CreateToken(t.Context(), "developer", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(t, err)
	token := reply.Status.Token
	eventually(t, "the developer may get pods and ask", func() bool {
		return hasRight(t, token, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Namespace: ns}) &&
			hasRight(t, token, authorizationv1.ResourceAttributes{Verb: "get", Resource: "pods", Subresource: "proxy", Namespace: installName})
	})
	require.False(t, hasRight(t, token, authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods", Subresource: "exec", Namespace: installName}))

	says, err := askWhy(t, token, ns+"/second")
	require.NoError(t, err, says)
	assert.Contains(t, says, ns+"/second: waiting ")
	assert.Contains(t, says, "Concurrency: 1 of 1 starting")
	assert.NotContains(t, says, "cannot be asked")
	figure(t, "a developer asks through the API server: %s", says)

	// The plugin would get the pod first, so this asks as the plugin does.
	pod := pods(t, installName)[0].Name
	path := func(of string) string {
		return "/api/v1/namespaces/" + installName + "/pods/https:" + pod + ":" + metricsPort + "/proxy/why/" + of
	}
	for _, c := range []struct {
		of, header string
		code       int
		body       string
	}{
		{ns + "/second", "Pod-Pacemaker-Authorization", 200, "waiting "},
		{other + "/third", "Pod-Pacemaker-Authorization", 403, "the token's user may not get the pod " + other + "/third"},
		{ns + "/second", "X-Other", 401, "no bearer token"}, // the API server keeps the header Authorization
	} {
		code, body := askThroughAPIServer(t, token, path(c.of), c.header)
		assert.Equal(t, c.code, code, c.of)
		assert.Contains(t, body, c.body, c.of)
	}
	slow.release(t)
	eventually(t, "all pods are ready", func() bool { return allReady(t, ns, 2) && allReady(t, other, 1) })
	in.uninstall(t)
}

// askWhy runs the plugin for kubectl with a token.
func askWhy(t *testing.T, token, pod string) (says string, err error) {
	t.Helper()
	access, err := clientcmd.LoadFromFile(node.Kubeconfig)
	require.NoError(t, err)
	for _, user := range access.AuthInfos {
		user.Token, user.TokenFile, user.ClientCertificate, user.ClientCertificateData, user.ClientKey, user.ClientKeyData = token, "", "", nil, "", nil
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*access, file))
	cmd := exec.CommandContext(t.Context(), repository("bin", "kubectl-pacemaker"), "why", pod)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(node.KubectlPath())+":"+os.Getenv("PATH"), "KUBECONFIG="+file, "KUBECACHEDIR="+t.TempDir())
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// askThroughAPIServer requests a path of the API server with a token, which also stands in a header.
func askThroughAPIServer(t *testing.T, token, path, header string) (code int, body string) {
	t.Helper()
	config := node.RESTConfig()
	config = rest.AnonymousClientConfig(config)
	config.BearerToken = token
	client, err := rest.HTTPClientFor(config)
	require.NoError(t, err)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, http.NoBody)
	require.NoError(t, err)
	request.Header.Set(header, "Bearer "+token)
	reply, err := client.Do(request)
	require.NoError(t, err)
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	require.NoError(t, err)
	return reply.StatusCode, string(text)
}
