package metricsproxy

import (
	"context"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
	"k8s.io/client-go/util/cert"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/admin"
)

const (
	// path is the only path that is served, and the non-resource URL that a client must be allowed to get.
	path = "/metrics"
	// patience bounds one request, with its reviews by the API server.
	patience = 9 * time.Second
	// lifetime of the certificate is longer than any process.
	lifetime = 10 * 365 * 24 * time.Hour
	// complaints is the shortest time between two log lines about an API server or daemon that does not answer.
	complaints = time.Minute
)

// Options of [Serve]. All are needed.
type Options struct {
	// Listen is the address to serve at, HOST:PORT. With an empty HOST it is every address of the node.
	Listen string
	// Upstream is the address of the daemon's metrics, HOST:PORT.
	Upstream string
	// Review returns what the API server says of a token. It is called concurrently.
	Review Review
	// Log gets a line, at most once a minute, if the API server or the daemon does not answer.
	Log logrus.FieldLogger
}

// Serve serves until ctx ends, and then returns nil. It blocks. If it cannot listen, it returns the error at once. Each call
// makes a new self-signed certificate.
func Serve(ctx context.Context, o Options) error {
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: "pod-pacemaker", MaxAge: lifetime})
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return fmt.Errorf("make a certificate: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{certificate}}
	// It uses no proxy of the environment, because both processes run on the node.
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	return admin.ServeTCP(ctx, o.Listen, config, newProxy(o, transport))
}

// proxy passes requests on to the daemon.
type proxy struct {
	daemon httputil.ReverseProxy
	judge  *judge
	log    logrus.FieldLogger
	told   rate.Sometimes
}

func newProxy(o Options, transport http.RoundTripper) http.Handler {
	p := &proxy{judge: newJudge(o.Review), log: o.Log, told: rate.Sometimes{Interval: complaints}}
	p.daemon = httputil.ReverseProxy{
		Transport: transport,
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.URL, r.Out.Host = &url.URL{Scheme: "http", Host: o.Upstream, Path: path}, ""
			r.Out.Body, r.Out.ContentLength = http.NoBody, 0
			// The token does not reach the daemon.
			r.Out.Header = http.Header{"Accept": r.In.Header["Accept"], "Accept-Encoding": r.In.Header["Accept-Encoding"]}
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			p.complain(err)
			http.Error(w, "the daemon of this node does not answer", http.StatusBadGateway)
		},
	}
	mux := http.NewServeMux()
	mux.Handle("GET "+path, p)
	return mux
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	verdict, err := p.judge.verdict(ctx, bearer(r))
	switch {
	case err != nil:
		p.complain(err)
		http.Error(w, "the API server does not answer who may read this", http.StatusServiceUnavailable)
	case verdict == Nobody:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "a bearer token that the API server knows is missing", http.StatusUnauthorized)
	case verdict == Denied:
		http.Error(w, "the token's user may not get the non-resource URL "+path, http.StatusForbidden)
	default:
		p.daemon.ServeHTTP(w, r.WithContext(ctx))
	}
}

func (p *proxy) complain(err error) {
	p.told.Do(func() { p.log.WithError(err).Warn("cannot serve the metrics") })
}

// bearer returns the token of a request; empty if it has none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
