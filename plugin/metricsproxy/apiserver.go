package metricsproxy

import (
	"context"
	"fmt"
	"net/http"

	"k8s.io/client-go/dynamic"

	"github.com/pod-pacemaker/pod-pacemaker/crd/kube"
	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
)

// How many requests go to the API server a second in the long run, and at once. Further ones wait.
const requestsPerSecond, requestsBurst = 10, 20

// Right is what the user of a token must be allowed to do: to get a pod or, without the name of one, the non-resource
// URL /metrics.
type Right struct{ Namespace, Pod string }

func (r Right) String() string {
	if r.Pod == "" {
		return "the non-resource URL " + path
	}
	return "the pod " + plain.Line(r.Namespace+"/"+r.Pod, mostOfAName)
}

// mostOfAName is more than a namespace and a name of Kubernetes have.
const mostOfAName = 512

// attributes returns the right as a SubjectAccessReview has it.
func (r Right) attributes() map[string]any {
	if r.Pod == "" {
		return map[string]any{"nonResourceAttributes": map[string]any{"path": path, "verb": "get"}}
	}
	return map[string]any{"resourceAttributes": map[string]any{"version": "v1", "resource": "pods", "verb": "get", "namespace": r.Namespace, "name": r.Pod}}
}

// Review asks the API server about a token, and returns the HTTP status with which to answer the client: 200 if the
// token's user has the right, 401 if the API server does not know the token, and 403 otherwise. It blocks until the API
// server has answered or ctx ends. With an error, nothing is known of the token.
type Review func(ctx context.Context, token string, right Right) (status int, err error)

// AskAPIServer returns a [Review] that asks the API server, with the kubeconfig of that name or, where the name is
// empty, with the pod's service account. AskAPIServer itself asks nothing.
func AskAPIServer(kubeconfig, userAgent string) (Review, error) {
	access, err := kube.Access(kubeconfig, userAgent)
	if err != nil {
		return nil, err
	}
	access.QPS, access.Burst = requestsPerSecond, requestsBurst
	client, err := dynamic.NewForConfig(access)
	if err != nil {
		return nil, fmt.Errorf("access to the API server: %w", err)
	}
	return func(ctx context.Context, token string, right Right) (int, error) {
		return review(ctx, client, token, right)
	}, nil
}

func review(ctx context.Context, client dynamic.Interface, token string, right Right) (int, error) {
	status, err := kube.Review(ctx, client, "authentication.k8s.io", "TokenReview", map[string]any{"token": token})
	if err != nil {
		return 0, fmt.Errorf("whose token is it: %w", err)
	}
	user, isUser := status["user"].(map[string]any)
	if status["authenticated"] != true || !isUser {
		return http.StatusUnauthorized, nil
	}
	spec := right.attributes()
	for of, as := range map[string]string{"username": "user", "uid": "uid", "groups": "groups", "extra": "extra"} {
		if value, there := user[of]; there {
			spec[as] = value
		}
	}
	status, err = kube.Review(ctx, client, "authorization.k8s.io", "SubjectAccessReview", spec)
	switch {
	case err != nil:
		return 0, fmt.Errorf("may the token's user get %s: %w", right, err)
	case status["allowed"] != true:
		return http.StatusForbidden, nil
	}
	return http.StatusOK, nil
}
