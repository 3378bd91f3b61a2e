package metricsproxy

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
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
	// path is the URL path of the metrics, and the non-resource URL that a client must be allowed to get.
	path = "/metrics"
	// requestTimeout is the longest time of one request, with its reviews by the API server.
	requestTimeout = 9 * time.Second
	// lifetime of the certificate is longer than any process.
	lifetime = 10 * 365 * 24 * time.Hour
	// complaints is the shortest time between two log lines about an API server or daemon that does not answer.
	complaints = time.Minute
	// remembered is how long a status is kept, and mostRemembered how many are.
	remembered     = time.Minute
	mostRemembered = 256
)

// TokenHeader has the token of a question about a pod that comes through the API server, in the form of the header
// Authorization, which the API server keeps.
const TokenHeader = "Pod-Pacemaker-Authorization" //nolint:gosec // the name of a header is no secret

// Options of [Serve]. All but the certificate are needed.
type Options struct {
	// Listen is the address to serve at, HOST:PORT. With an empty HOST it is every address of the node.
	Listen string
	// Upstream is the address of the daemon's metrics, HOST:PORT.
	Upstream string
	// Review returns what the API server says of a token. It is called concurrently.
	Review Review
	// Why answers a question about a pod: as a line of text, or as JSON. The error about a pod that the daemon does not
	// know wraps [admin.ErrUnknownPod]. It is called concurrently. If it is nil, no such question is answered.
	Why func(ctx context.Context, namespace, pod string, asJSON bool) (answer string, err error)
	// Certificate and Key are the files of the certificate, and of its key, in PEM. They are read for each connection, so
	// they may be renewed. If both are empty, Serve makes a self-signed certificate.
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
	p := newProxy(o, transport)
	mux.Handle("GET "+path, p)
	if o.Why != nil {
		mux.HandleFunc("GET /why/{namespace}/{pod}", p.why)
	}
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
	statuses   *cache.LRUExpireCache // by the right and the hash of the token, so that no token stays in memory
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
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	if p.permits(ctx, w, bearer(r.Header.Get("Authorization")), Right{}) {
		p.daemon.ServeHTTP(w, r.WithContext(ctx))
	}
}

// why answers a question about a pod, as text or, with ?output=json, as JSON. The API server's proxy passes no header
// Authorization on, so the token may also be in [TokenHeader].
func (p *proxy) why(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), requestTimeout)
	defer cancel()
	right := Right{Namespace: r.PathValue("namespace"), Pod: r.PathValue("pod")}
	if !p.permits(ctx, w, bearer(cmp.Or(r.Header.Get(TokenHeader), r.Header.Get("Authorization"))), right) {
		return
	}
	asJSON := r.URL.Query().Get("output") == "json"
	answer, err := p.Why(ctx, right.Namespace, right.Pod, asJSON)
	switch {
	case errors.Is(err, admin.ErrUnknownPod):
		http.Error(w, err.Error(), http.StatusNotFound)
	case err != nil:
		p.complain(err)
		http.Error(w, "the daemon of this node does not answer", http.StatusBadGateway)
	default:
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		if asJSON {
			w.Header().Set("Content-Type", "application/json")
		}
		_, _ = io.WriteString(w, answer) // an error means that the client is gone
	}
}

// permits returns whether the user of a token has the right. If not, it answers the request.
func (p *proxy) permits(ctx context.Context, w http.ResponseWriter, token string, right Right) bool {
	status, err := p.status(ctx, token, right)
	switch {
	case err != nil:
		p.complain(err)
		http.Error(w, "the API server does not say who may read this", http.StatusServiceUnavailable)
	case status == http.StatusUnauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
		http.Error(w, "the request has no bearer token that the API server accepts", status)
	case status != http.StatusOK:
		http.Error(w, "the token's user may not get "+right.String(), http.StatusForbidden)
	}
	return err == nil && status == http.StatusOK
}

// reviewed is what the API server was asked.
type reviewed struct {
	token [sha256.Size]byte
	right Right
}

// status returns the status for a token. It blocks while the API server is asked.
func (p *proxy) status(ctx context.Context, token string, right Right) (int, error) {
	if token == "" {
		return http.StatusUnauthorized, nil
	}
	key := reviewed{sha256.Sum256([]byte(token)), right}
	if kept, ok := p.statuses.Get(key); ok {
		return kept.(int), nil //nolint:errcheck // it holds only statuses
	}
	status, err := p.Review(ctx, token, right)
	if err == nil {
		p.statuses.Add(key, status, remembered)
	}
	return status, err
}

// complain logs an error, unless one was logged less than [complaints] ago.
func (p *proxy) complain(err error) {
	if p.complained.Allow() {
		p.Log.WithError(err).Warn("cannot answer a request for metrics, or about a pod")
	}
}

// bearer returns the token of a header like Authorization; empty if it has none.
func bearer(header string) string {
	scheme, token, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}
