package metricsproxy

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/time/rate"
	"k8s.io/apimachinery/pkg/util/cache"
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
	// remembered is how long a status is kept, and mostRemembered how many are.
	remembered     = time.Minute
	mostRemembered = 256
)

// Options of [Serve]. All but the certificate are needed.
type Options struct {
	// Listen is the address to serve at, HOST:PORT. With an empty HOST it is every address of the node.
	Listen string
	// Upstream is the address of the daemon's metrics, HOST:PORT.
	Upstream string
	// Review returns what the API server says of a token. It is called concurrently.
	Review Review
	// Certificate and Key are the files of the certificate, and of its key, in PEM. They are read for each connection, so
	// they may be renewed. Both empty: Serve makes a self-signed certificate.
	Certificate, Key string
	// Log gets a line, at most once a minute, if the API server or the daemon does not answer.
	Log logrus.FieldLogger
}

// Serve serves until ctx ends, and then returns nil. It blocks. If it cannot listen, it returns the error at once,
// and so it does if it cannot read the certificate.
func Serve(ctx context.Context, o Options) error {
	certificate, err := o.certificate()
	if err != nil {
		return err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
		if o.Certificate == "" {
			return &certificate, nil
		}
		renewed, err := o.certificate()
		return &renewed, err
	}}
	// It uses no proxy of the environment, because both processes run on the node.
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 2, IdleConnTimeout: time.Minute}
	defer transport.CloseIdleConnections()
	mux := http.NewServeMux()
	mux.Handle("GET "+path, newProxy(o, transport))
	return admin.ServeTCP(ctx, o.Listen, config, mux)
}

// certificate reads the certificate, or makes one.
func (o Options) certificate() (tls.Certificate, error) {
	if o.Certificate != "" {
		certificate, err := tls.LoadX509KeyPair(o.Certificate, o.Key)
		if err != nil {
			return certificate, fmt.Errorf("read the certificate: %w", err)
		}
		return certificate, nil
	}
	certPEM, keyPEM, err := cert.GenerateSelfSignedCertKeyWithOptions(cert.SelfSignedCertKeyOptions{Host: "pod-pacemaker", MaxAge: lifetime})
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("make a certificate: %w", err)
	}
	certificate, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		return certificate, fmt.Errorf("make a certificate: %w", err)
	}
	return certificate, nil
}

// proxy passes requests on to the daemon.
type proxy struct {
	Options
	daemon     httputil.ReverseProxy
	statuses   *cache.LRUExpireCache // by the hash of the token, so that no token stays in memory
	complained *rate.Limiter
}

func newProxy(o Options, transport http.RoundTripper) *proxy {
	p := &proxy{Options: o, statuses: cache.NewLRUExpireCache(mostRemembered), complained: rate.NewLimiter(rate.Every(complaints), 1)}
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
	return p
}

func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), patience)
	defer cancel()
	status, err := p.status(ctx, bearer(r))
	switch {
	case err != nil:
		p.complain(err)
		http.Error(w, "the API server does not say who may read this", http.StatusServiceUnavailable)
	case status == http.StatusOK:
		p.daemon.ServeHTTP(w, r.WithContext(ctx))
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the request has no bearer token that the API server accepts", status)
	default:
		http.Error(w, "the token's user may not get the non-resource URL "+path, http.StatusForbidden)
	}
}

// status returns the status for a token. It blocks while the API server is asked.
func (p *proxy) status(ctx context.Context, token string) (int, error) {
	if token == "" {
		return http.StatusUnauthorized, nil
	}
	hash := sha256.Sum256([]byte(token))
	if kept, ok := p.statuses.Get(hash); ok {
		return kept.(int), nil //nolint:errcheck // it holds only statuses
	}
	status, err := p.Review(ctx, token)
	if err == nil {
		p.statuses.Add(hash, status, remembered)
	}
	return status, err
}

// complain logs an error, unless one was logged less than [complaints] ago.
func (p *proxy) complain(err error) {
	if p.complained.Allow() {
		p.Log.WithError(err).Warn("cannot serve the metrics")
	}
}

// bearer returns the token of a request; empty if it has none.
func bearer(r *http.Request) string {
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
