package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/metricsproxy"
)

const (
	// mostOfAnAnswer is how many bytes of an answer are read, at most.
	mostOfAnAnswer = 1 << 20
	// answersWithin is the longest time for a question through the API server.
	answersWithin = 20 * time.Second
)

var (
	// errNotServed says that the daemon's pod has nothing that answers questions through the API server.
	errNotServed = errors.New("metricsProxy.why is off")
	// errNoToken says that the user's credentials cannot be passed on.
	errNoToken = errors.New("your credentials for the API server have no token")
)

// throughAPIServer asks the metrics-proxy beside a daemon why a pod waits, through the API server's proxy of pods. The
// error of a daemon that does not know the pod has [notKnown].
func (a *asker) throughAPIServer(ctx context.Context, daemon, pod corev1.Pod) (answer string, err error) {
	port := whyPort(daemon)
	switch {
	case port == 0:
		return "", errNotServed
	case a.overrides.AuthInfo.Impersonate != "" || a.overrides.AuthInfo.ImpersonateUID != "":
		return "", errors.New("--as: the token that the daemon sees is your own")
	}
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/https:%s:%d/proxy/why/%s/%s",
		url.PathEscape(daemon.Namespace), url.PathEscape(daemon.Name), port, url.PathEscape(pod.Namespace), url.PathEscape(pod.Name))
	if a.json {
		path += "?output=json"
	}
	return a.read(ctx, path)
}

// whyPort returns the port at which the pod of a daemon answers questions about pods; 0 if it answers none.
func whyPort(daemon corev1.Pod) int32 {
	for _, c := range daemon.Spec.Containers {
		asked := slices.ContainsFunc(c.Args, func(arg string) bool { return strings.HasPrefix(arg, "--why-socket=") })
		if c.Name == "metrics-proxy" && asked && len(c.Ports) > 0 {
			return c.Ports[0].ContainerPort
		}
	}
	return 0
}

// realRead requests a path of the API server.
func (a *asker) realRead(ctx context.Context, path string) (string, error) {
	config, err := a.access()
	if err != nil {
		return "", err
	}
	return readThroughAPIServer(ctx, config, path)
}

// access returns how to reach the API server, by the flags that kubectl would get.
func (a *asker) access() (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = a.kubeconfig
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &a.overrides).ClientConfig()
}

// readThroughAPIServer requests a path of the API server. The user's token goes along in a header that the API server
// passes on, as it keeps the one that it reads itself.
func readThroughAPIServer(ctx context.Context, config *rest.Config, path string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	config = rest.CopyConfig(config)
	// It is the innermost of the transports, so the others have set the token.
	config.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return tokenCopier{next} }
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return "", err
	}
	defer client.CloseIdleConnections()
	host, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return "", err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimRight(host.String(), "/")+path, http.NoBody)
	if err != nil {
		return "", err
	}
	reply, err := client.Do(request)
	if err != nil {
		return "", err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(io.LimitReader(reply.Body, mostOfAnAnswer))
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("%s: %s", reply.Status, oneLine(string(body)))
	}
	return string(body), err
}

// tokenCopier copies the token of each request into a header that the API server passes on.
type tokenCopier struct{ next http.RoundTripper }

func (c tokenCopier) RoundTrip(r *http.Request) (*http.Response, error) {
	token := r.Header.Get("Authorization")
	if !strings.HasPrefix(token, "Bearer ") {
		return nil, errNoToken
	}
	r = r.Clone(r.Context())
	r.Header.Set(metricsproxy.TokenHeader, token)
	return c.next.RoundTrip(r)
}
