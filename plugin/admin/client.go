package admin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
)

// ErrNoDaemon is wrapped, with its cause, by the error of a client that reached
// no daemon at the socket.
var ErrNoDaemon = errors.New("no daemon answers")

// maxAnswer bounds what a client reads of one answer: a thousand pods take less
// than one MiB.
const maxAnswer = 64 << 20

// Client asks a daemon at its socket. Make one with NewClient. Its methods are
// safe for concurrent use; each makes a connection of its own, blocks until the
// answer, ctx or ten seconds end, and leaves nothing behind.
type Client struct {
	http *http.Client
}

// NewClient returns a client of the daemon at the socket. It opens nothing.
func NewClient(socketPath string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		conn, err := d.DialContext(ctx, "unix", socketPath)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", ErrNoDaemon, err)
		}
		return conn, nil
	}
	return &Client{http: &http.Client{
		Timeout:   requestTimeout,
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
	}}
}

// Status asks how the daemon and its node are.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, "/v1/status", nil)
}

// Why asks why a pod waits or started. The error about a pod that the daemon
// does not know wraps ErrUnknownPod.
func (c *Client) Why(ctx context.Context, namespace, name string) (Why, error) {
	w, err := ask[Why](ctx, c, "/v1/why", url.Values{"namespace": {namespace}, "name": {name}})
	if errors.Is(err, ErrUnknownPod) {
		return w, fmt.Errorf("%s/%s: %w", namespace, name, ErrUnknownPod)
	}
	return w, err
}

// Costs asks what was learned of starts.
func (c *Client) Costs(ctx context.Context) (Costs, error) {
	return ask[Costs](ctx, c, "/v1/costs", nil)
}

// Alive returns nil if the daemon makes decisions, else an error that says why it does not.
func (c *Client) Alive(ctx context.Context) error {
	_, err := ask[struct{}](ctx, c, "/v1/alive", nil)
	return err
}

// ask asks, and reads the answer.
func ask[T any](ctx context.Context, c *Client, path string, query url.Values) (read T, err error) {
	u := url.URL{Scheme: "http", Host: "pod-pacemaker", Path: path, RawQuery: query.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), http.NoBody)
	if err != nil {
		return read, fmt.Errorf("ask the daemon: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if whole, ok := errors.AsType[*url.Error](err); ok {
			err = whole.Err // without the URL, which names a host that does not exist
		}
		return read, fmt.Errorf("ask the daemon: %w", err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return read, fmt.Errorf("read the daemon's answer: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return read, refusal(resp, body)
	}
	if err := json.Unmarshal(body, &read); err != nil {
		return read, fmt.Errorf("understand the daemon's answer: %w", err)
	}
	return read, nil
}

func refusal(resp *http.Response, body []byte) error {
	var e Error
	if err := json.Unmarshal(body, &e); err != nil || e.Error == "" {
		return fmt.Errorf("the daemon answers %s", resp.Status)
	}
	if resp.StatusCode == http.StatusNotFound {
		return ErrUnknownPod
	}
	return fmt.Errorf("the daemon answers: %s", e.Error)
}
