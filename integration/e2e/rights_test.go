//go:build e2e

package e2e

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pod-pacemaker/pod-pacemaker/integration/chart"
)

// asServiceAccount returns a kubeconfig for the host, with only the rights of the shipped roles on
// this node. Every scenario's daemon has these rights, unless the scenario says why it needs more.
func asServiceAccount(t *testing.T) string {
	t.Helper()
	return shippedAccess(t, node.Kubeconfig, node.NodeName)
}

// shippedAccess returns access with the rights of the shipped roles, as a pod on that node has it,
// over the address of an administrator's kubeconfig.
func shippedAccess(t *testing.T, admin, on string) string {
	t.Helper()
	// An earlier scenario may have applied or removed the rights.
	if token, err := tokenOf(t, "pod-pacemaker", on); err != nil || !hasRight(t, token, readsOwnDaemonSet("pod-pacemaker")) {
		kubectl(t, append([]string{"apply"}, shippedRights()...)...)
	}
	return accessOf(t, admin, "pod-pacemaker", on, readsOwnDaemonSet("pod-pacemaker"))
}

// shippedRights are the arguments of kubectl that name the shipped manifests of the rights.
func shippedRights() (arguments []string) {
	for _, name := range []string{"namespace.yaml", "serviceaccount.yaml", "ownnode.yaml", "rbac.yaml"} {
		arguments = append(arguments, "-f", repository("deploy", "base", name))
	}
	return arguments
}

// withoutShippedRights deletes the rights that an earlier scenario may have applied with kubectl: Helm does not adopt
// them. The next scenario that needs them applies them again.
func withoutShippedRights(t *testing.T) {
	t.Helper()
	kubectl(t, append([]string{"delete", "--ignore-not-found"}, shippedRights()...)...)
}

// readsOwnDaemonSet is the right of a release that is applied last, in the namespace of the
// release's name.
func readsOwnDaemonSet(release string) authorizationv1.ResourceAttributes {
	return authorizationv1.ResourceAttributes{Verb: "get", Group: "apps", Resource: "daemonsets", Namespace: release, Name: release}
}

// chartAccess returns access with the rights that the chart renders for a release with these
// values, in the namespace of the release's name. last is one of the rights that come with the
// values.
func chartAccess(t *testing.T, release string, values map[string]any, last authorizationv1.ResourceAttributes) string {
	t.Helper()
	values["fullnameOverride"] = release
	files, err := chart.Render(chart.Release{Name: release, Namespace: release}, values)
	require.NoError(t, err)
	for _, name := range []string{"namespace.yaml", "serviceaccount.yaml", "ownnode.yaml", "rbac.yaml"} {
		if files[name] != "" {
			applied(t, files[name])
		}
	}
	return accessOf(t, node.Kubeconfig, release, node.NodeName, last)
}

// applied applies manifests until the test ends.
func applied(t *testing.T, manifests string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "manifests.yaml")
	require.NoError(t, os.WriteFile(file, []byte(manifests), 0o600))
	kubectl(t, "apply", "--server-side", "-f", file)
	t.Cleanup(func() {
		out, err := node.Kubectl(context.Background(), "delete", "-f", file)
		assert.NoError(t, err, "%s", out)
	})
}

// accessOf returns a kubeconfig with a token of the service account, which has the name of its
// namespace, once the account has a right.
func accessOf(t *testing.T, admin, account, on string, right authorizationv1.ResourceAttributes) string {
	t.Helper()
	token, err := tokenOf(t, account, on)
	require.NoError(t, err)
	access, err := clientcmd.LoadFromFile(admin)
	require.NoError(t, err)
	for _, user := range access.AuthInfos {
		user.Token = token
	}
	file := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, clientcmd.WriteToFile(*access, file))
	eventually(t, "the rights of "+account+" are in force", func() bool { return hasRight(t, token, right) })
	return file
}

// tokenOf returns a token of a service account that names a node, like the token of a pod.
func tokenOf(t *testing.T, account, on string) (string, error) {
	t.Helper()
	self, err := node.Client().CoreV1().Nodes().Get(t.Context(), on, metav1.GetOptions{})
	require.NoError(t, err)
	const day = int64(24 * 3600)
	token, err := node.Client().CoreV1().ServiceAccounts(account).CreateToken(t.Context(), account, &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(day),
		BoundObjectRef:    &authenticationv1.BoundObjectReference{Kind: "Node", APIVersion: "v1", Name: on, UID: self.UID},
	}}, metav1.CreateOptions{})
	if err != nil {
		return "", err
	}
	return token.Status.Token, nil
}

// hasRight reports whether the bearer of a token has a right.
func hasRight(t *testing.T, token string, right authorizationv1.ResourceAttributes) bool {
	t.Helper()
	config := node.RESTConfig()
	config.BearerToken, config.BearerTokenFile = token, ""
	client, err := kubernetes.NewForConfig(config)
	require.NoError(t, err)
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &right}}
	said, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	require.NoError(t, err)
	return said.Status.Allowed
}

// refusedRight matches the API server's message about a request without the right to it, by roles
// or by the policy of the own node.
var refusedRight = regexp.MustCompile(`cannot (get|list|watch|create|update|patch|delete) resource|ValidatingAdmissionPolicy`)

// assertRightsSuffice checks that the API server refused no request of the daemon.
func (d *daemon) assertRightsSuffice(t *testing.T) {
	t.Helper()
	log, err := os.ReadFile(d.LogFile())
	require.NoError(t, err)
	for line := range strings.Lines(string(log)) {
		if refusedRight.MatchString(line) {
			assert.Fail(t, "the daemon lacks a right", line)
			return
		}
	}
}
