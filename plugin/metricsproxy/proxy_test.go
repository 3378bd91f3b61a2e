package metricsproxy

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sirupsen/logrus"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/util/cert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

// cluster is an API server that knows tokens: one of a user who may read the metrics, and others of users who may
// not.
type cluster struct {
	t    *testing.T
	away atomic.Bool
}

func (c *cluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if c.away.Load() {
		http.Error(w, "away", http.StatusInternalServerError)
		return
	}
	var review struct {
		APIVersion, Kind string
		Spec             struct {
			Token, User, UID      string
			Groups                []string
			Extra                 map[string][]string
			NonResourceAttributes struct{ Path, Verb string }
			ResourceAttributes    *struct{ Namespace, Name, Verb, Group, Version, Resource string }
		}
	}
	assert.NoError(c.t, json.NewDecoder(r.Body).Decode(&review))
	status := map[string]any{}
	switch r.URL.Path {
	case "/apis/authentication.k8s.io/v1/tokenreviews":
		if user, known := strings.CutPrefix(review.Spec.Token, "token of "); known {
			status = map[string]any{"authenticated": true, "user": map[string]any{
				"username": user, "uid": "uid of " + user, "groups": []string{"readers"}, "extra": map[string]any{"pod": []string{"p"}},
			}}
		}
	case "/apis/authorization.k8s.io/v1/subjectaccessreviews":
		assert.Equal(c.t, "uid of "+review.Spec.User, review.Spec.UID)
		assert.Equal(c.t, []string{"readers"}, review.Spec.Groups)
		assert.Equal(c.t, map[string][]string{"pod": {"p"}}, review.Spec.Extra)
		if asked := review.Spec.ResourceAttributes; asked != nil {
			assert.Equal(c.t, "get v1 pods", asked.Verb+" "+asked.Group+asked.Version+" "+asked.Resource)
			status["allowed"] = review.Spec.User == "developer of "+asked.Namespace
			break
		}
		assert.Equal(c.t, "get /metrics", review.Spec.NonResourceAttributes.Verb+" "+review.Spec.NonResourceAttributes.Path)
		status["allowed"] = review.Spec.User == "prometheus"
	default:
		assert.Fail(c.t, "asked for something else", r.URL.Path)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusCreated)
	assert.NoError(c.t, json.NewEncoder(w).Encode(map[string]any{"apiVersion": review.APIVersion, "kind": review.Kind, "status": status}))
}

// daemon answers like the daemon of a node, which must see no token.
func daemon(t *testing.T) (address string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		assert.Empty(t, r.Header.Get("Authorization"), "the daemon must not see the token")
		assert.Equal(t, "/metrics", r.URL.Path)
		assert.Equal(t, "application/openmetrics-text", r.Header.Get("Accept"))
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		_, err := io.WriteString(w, "pod_pacemaker_connected 1\n")
		assert.NoError(t, err)
	}))
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// hosts is the number of addresses that unused has returned.
var hosts atomic.Uint32

// unused returns an address at which nobody listens. Each is of a host of its own in 127.0.0.0/8, so that no other test
// gets its port.
func unused(t *testing.T) string {
	t.Helper()
	n := hosts.Add(1)
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", fmt.Sprintf("127.0.%d.%d:0", 1+n/250, 1+n%250))
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// served serves until the test ends, and returns its address.
func served(t *testing.T, upstream string, api http.Handler) (address string) {
	t.Helper()
	return servedWith(t, Options{}, upstream, api)
}

func servedWith(t *testing.T, o Options, upstream string, api http.Handler) (address string) {
	t.Helper()
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	require.NoError(t, os.WriteFile(kubeconfig, []byte("{apiVersion: v1, kind: Config, current-context: c, contexts: [{name: c, context: {cluster: c}}], "+
		"clusters: [{name: c, cluster: {server: '"+server.URL+"'}}]}\n"), 0o600))
	var err error
	o.Review, err = AskAPIServer(kubeconfig, "test")
	require.NoError(t, err)
	log := logrus.New()
	log.SetOutput(io.Discard)
	address = unused(t)
	o.Listen, o.Upstream, o.Log = address, upstream, log
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- Serve(ctx, o)
	}()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	require.Eventually(t, func() bool {
		code, _, err := ask(t, address, http.MethodGet, "/metrics", "")
		return err == nil && code == http.StatusUnauthorized
	}, time.Minute, 5*time.Millisecond)
	return address
}

// ask asks over TLS, with an Authorization header unless authorization is empty.
func ask(t *testing.T, address, method, path, authorization string) (code int, body string, err error) {
	t.Helper()
	header := http.Header{"Accept": {"application/openmetrics-text"}}
	if authorization != "" {
		header.Set("Authorization", authorization)
	}
	code, says, body, err := send(t, address, method, path, header)
	assert.NotEqual(t, http.StatusUnauthorized == code, says.Get("WWW-Authenticate") == "")
	return code, body, err
}

// send asks over TLS. code is 0 if no answer came.
func send(t *testing.T, address, method, path string, header http.Header) (code int, says http.Header, body string, err error) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, "https://"+address+path, http.NoBody)
	require.NoError(t, err)
	request.Header = header
	client := http.Client{Timeout: time.Minute, Transport: &http.Transport{
		DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
	}}
	reply, err := client.Do(request)
	if err != nil {
		return 0, nil, "", err
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	return reply.StatusCode, reply.Header, string(text), err
}

func TestOnlyPermittedUsersReadTheMetrics(t *testing.T) {
	t.Parallel()
	api := &cluster{t: t}
	address := served(t, daemon(t), api)
	for _, c := range []struct {
		method, path, authorization string
		code                        int
		body                        string
	}{
		{http.MethodGet, "/metrics", "", http.StatusUnauthorized, "the request has no bearer token that the API server accepts\n"},
		{http.MethodGet, "/metrics", "Basic dTpw", http.StatusUnauthorized, "no bearer token"},
		{http.MethodGet, "/metrics", "Bearer nonsense", http.StatusUnauthorized, "no bearer token"},
		{http.MethodGet, "/metrics", "Bearer token of a stranger", http.StatusForbidden, "the token's user may not get the non-resource URL /metrics\n"},
		{http.MethodGet, "/metrics", "Bearer token of prometheus", http.StatusOK, "pod_pacemaker_connected 1\n"},
		{http.MethodGet, "/metrics?a=b", "bearer token of prometheus", http.StatusOK, "pod_pacemaker_connected 1\n"},
		{http.MethodGet, "/status.json", "Bearer token of prometheus", http.StatusNotFound, ""},
		{http.MethodGet, "/", "", http.StatusNotFound, ""},
		{http.MethodPost, "/metrics", "Bearer token of prometheus", http.StatusMethodNotAllowed, ""},
	} {
		code, body, err := ask(t, address, c.method, c.path, c.authorization)
		require.NoError(t, err)
		assert.Equal(t, c.code, code, "%+v", c)
		assert.Contains(t, body, c.body)
	}

	api.away.Store(true)
	code, body, err := ask(t, address, http.MethodGet, "/metrics", "Bearer token of another")
	require.NoError(t, err)
	assert.Equal(t, http.StatusServiceUnavailable, code, "the API server cannot confirm this token")
	assert.NotContains(t, body, "pod_pacemaker_")

	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+address+"/metrics", http.NoBody)
	require.NoError(t, err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	reply, err := client.Do(request)
	require.NoError(t, err)
	require.NoError(t, reply.Body.Close())
	assert.Equal(t, http.StatusBadRequest, reply.StatusCode, "a request without TLS is refused")
}

// A certificate of one's own is served, and again when it has been renewed, to clients that name no server, too.
func TestACertificateOfOnesOwnIsServedAndRenewed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	o := Options{Certificate: filepath.Join(dir, "tls.crt"), Key: filepath.Join(dir, "tls.key")}
	renew := func() (roots *x509.CertPool) {
		certPEM, keyPEM, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: "metrics.example", MaxAge: 48 * time.Hour})
		require.NoError(t, err)
		require.NoError(t, os.WriteFile(o.Certificate, certPEM, 0o600))
		require.NoError(t, os.WriteFile(o.Key, keyPEM, 0o600))
		roots = x509.NewCertPool()
		require.True(t, roots.AppendCertsFromPEM(certPEM))
		return roots
	}
	first := renew()
	address := servedWith(t, o, daemon(t), &cluster{t: t})
	verified := func(roots *x509.CertPool) error {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: roots, ServerName: "metrics.example"}}).DialContext(t.Context(), "tcp", address)
		if err == nil {
			err = conn.Close()
		}
		return err
	}
	require.NoError(t, verified(first))
	second := renew()
	require.NoError(t, verified(second))
	require.ErrorContains(t, verified(first), "certificate signed by unknown authority")
	code, _, err := ask(t, address, http.MethodGet, "/metrics", "Bearer token of prometheus") // by address
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, code)

	require.NoError(t, os.Remove(o.Key))
	require.Error(t, verified(second))
	require.ErrorContains(t, Serve(t.Context(), o), "read the certificate: open "+o.Key+": no such file")
}

func TestADaemonThatDoesNotAnswerIsABadGateway(t *testing.T) {
	t.Parallel()
	code, body, err := ask(t, served(t, unused(t), &cluster{t: t}), http.MethodGet, "/metrics", "Bearer token of prometheus")
	require.NoError(t, err)
	assert.Equal(t, http.StatusBadGateway, code)
	assert.Equal(t, "the daemon of this node does not answer\n", body)
}

// Silent clients that connect, before or after the handshake, do not keep others from reading.
func TestMetricsAreServedBesideSilentConnections(t *testing.T) {
	t.Parallel()
	for name, handshake := range map[string]bool{"no handshake": false, "a handshake": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := served(t, daemon(t), &cluster{t: t})
			var dialer net.Dialer
			for range 200 {
				conn, err := dialer.DialContext(t.Context(), "tcp", address)
				require.NoError(t, err)
				t.Cleanup(func() { _ = conn.Close() })
				if handshake {
					require.NoError(t, tls.Client(conn, &tls.Config{InsecureSkipVerify: true}).HandshakeContext(t.Context()))
				}
			}
			code, _, err := ask(t, address, http.MethodGet, "/metrics", "Bearer token of prometheus")
			require.NoError(t, err)
			assert.Equal(t, http.StatusOK, code)
		})
	}
}

func TestTheErrorNamesAnAddressInUse(t *testing.T) {
	t.Parallel()
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, l.Close()) })
	err = Serve(t.Context(), Options{Listen: l.Addr().String()})
	require.ErrorContains(t, err, "serve HTTP: listen tcp")
	require.ErrorContains(t, err, "address already in use")
}

func TestWithoutAccessToAnAPIServerTheProxyFails(t *testing.T) {
	t.Parallel()
	_, err := AskAPIServer(filepath.Join(t.TempDir(), "none"), "test")
	require.ErrorContains(t, err, "access to the API server")
}

func TestTheCertificateOutlivesTheProcess(t *testing.T) {
	t.Parallel()
	dialer := tls.Dialer{Config: &tls.Config{InsecureSkipVerify: true}}
	conn, err := dialer.DialContext(t.Context(), "tcp", served(t, daemon(t), &cluster{t: t}))
	require.NoError(t, err)
	defer conn.Close()
	secure, ok := conn.(*tls.Conn)
	require.True(t, ok)
	certificate := secure.ConnectionState().PeerCertificates[0]
	assert.True(t, certificate.NotAfter.After(time.Now().AddDate(9, 0, 0)), certificate.NotAfter)
	assert.True(t, certificate.NotBefore.Before(time.Now().Add(-time.Minute)), "a client's clock may be behind")
}

// The token may be in the header of its own, because the API server keeps the other one.
func TestOnlyUsersWhoMayGetAPodLearnWhyItWaits(t *testing.T) {
	t.Parallel()
	answers := func(_ context.Context, namespace, pod string, asJSON bool) (string, error) {
		switch {
		case pod == "broken":
			return "", errors.New("no daemon: a secret")
		case pod != "web-0":
			return "", fmt.Errorf("%s/%s: %w", namespace, pod, admin.ErrUnknownPod)
		case asJSON:
			return "{}\n", nil
		}
		return "waiting\n", nil
	}
	address := servedWith(t, Options{Why: answers}, unused(t), &cluster{t: t})
	const developer = "Bearer token of developer of shop"
	for _, c := range []struct {
		path, header, authorization string
		code                        int
		body                        string
	}{
		{"/why/shop/web-0", TokenHeader, developer, http.StatusOK, "waiting\n"},
		{"/why/shop/web-0", "Authorization", developer, http.StatusOK, "waiting\n"},
		{"/why/shop/web-0?output=json", TokenHeader, developer, http.StatusOK, "{}\n"},
		{"/why/shop/web-1", TokenHeader, developer, http.StatusNotFound, "shop/web-1: not known on this node"},
		{"/why/shop/broken", TokenHeader, developer, http.StatusBadGateway, "the daemon of this node does not answer\n"},
		{"/why/bank/web-0", TokenHeader, developer, http.StatusForbidden, "the token's user may not get the pod bank/web-0\n"},
		{"/why/shop/web-0", TokenHeader, "Bearer token of prometheus", http.StatusForbidden, "the token's user may not get the pod shop/web-0\n"},
		{"/why/shop/web-0", TokenHeader, "Bearer nonsense", http.StatusUnauthorized, "no bearer token"},
		{"/why/shop/web-0", TokenHeader, "", http.StatusUnauthorized, "no bearer token"},
		{"/metrics", "Authorization", developer, http.StatusForbidden, "the token's user may not get the non-resource URL /metrics\n"},
		{"/metrics", TokenHeader, "Bearer token of prometheus", http.StatusUnauthorized, "no bearer token"},
		{"/why/shop", TokenHeader, developer, http.StatusNotFound, "404"},
	} {
		code, body := askWith(t, address, c.path, c.header, c.authorization)
		assert.Equal(t, c.code, code, c.path)
		assert.Contains(t, body, c.body, c.path)
		assert.NotContains(t, body, "secret", c.path)
	}
	code, _ := askWith(t, served(t, unused(t), &cluster{t: t}), "/why/shop/web-0", TokenHeader, developer)
	assert.Equal(t, http.StatusNotFound, code, "without Why")
}

// askWith is a GET with a header, whose answer must come.
func askWith(t *testing.T, address, path, header, value string) (code int, body string) {
	t.Helper()
	code, _, body, err := send(t, address, http.MethodGet, path, http.Header{http.CanonicalHeaderKey(header): {value}})
	require.NoError(t, err)
	return code, body
}
