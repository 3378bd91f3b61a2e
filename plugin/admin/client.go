package admin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"
)

// Client asks a daemon at its socket. NewClient makes one. Its methods are safe for concurrent use. Each call uses
// its own connection, and blocks until the answer, until ctx ends, or for at most ten seconds. Errors wrap
// [fs.ErrNotExist] if there is no socket, and [syscall.ECONNREFUSED] if no daemon listens there.
type Client struct {
	http *http.Client
}

// NewClient returns a client of the daemon at the socket. It does not connect.
func NewClient(socketPath string) *Client {
	dial := func(ctx context.Context, _, _ string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, "unix", socketPath)
	}
	return &Client{http: &http.Client{
		Timeout:   requestTimeout,
		Transport: &http.Transport{DialContext: dial, DisableKeepAlives: true},
	}}
}

// Status returns the state of the daemon, its node and its pods.
func (c *Client) Status(ctx context.Context) (Status, error) {
	return ask[Status](ctx, c, http.MethodGet, "/v1/status")
}

// Costs returns what the daemon learned about the costs of starts.
func (c *Client) Costs(ctx context.Context) (Costs, error) {
	return ask[Costs](ctx, c, http.MethodGet, "/v1/costs")
}

// Alive returns nil if the daemon makes decisions, and otherwise an error with the reason.
func (c *Client) Alive(ctx context.Context) error {
	_, err := c.call(ctx, http.MethodGet, "/v1/alive")
	return err
}

// Why explains the latest start of a pod, at the socket of [ServeWhy]. The error about an unknown pod wraps
// [ErrUnknownPod].
func (c *Client) Why(ctx context.Context, namespace, pod string) (Why, error) {
	return ask[Why](ctx, c, http.MethodGet, "/v1/why/"+url.PathEscape(namespace)+"/"+url.PathEscape(pod))
}

// SwitchOff lets no pod of the node wait for a time span of at most [MaxOff], and returns its end. 0 ends that at once,
// and returns the zero time.
func (c *Client) SwitchOff(ctx context.Context, span time.Duration) (until time.Time, err error) {
	return ask[time.Time](ctx, c, http.MethodPost, "/v1/off?for="+span.String())
}

// Admit lets a pod that waits start now, by its UID. It returns an error if nothing holds the pod.
func (c *Client) Admit(ctx context.Context, uid string) error {
	_, err := c.call(ctx, http.MethodPost, "/v1/admit?uid="+url.QueryEscape(uid))
	return err
}

func ask[T any](ctx context.Context, c *Client, method, path string) (answer T, err error) {
	body, err := c.call(ctx, method, path)
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return answer, fmt.Errorf("decode the daemon's answer: %w", err)
	}
	return answer, nil
}

// call returns the body of the daemon's answer. An answer that is not 200 is an error with its text.
func (c *Client) call(ctx context.Context, method, path string) (body []byte, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://pod-pacemaker"+path, http.NoBody)
	if err != nil {
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		if whole, ok := errors.AsType[*url.Error](err); ok {
			err = whole.Err // without the URL, which names a host that does not exist
		}
		return nil, fmt.Errorf("ask the daemon: %w", err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	body, err = io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("read the daemon's answer: %w", err)
	}
	if resp.StatusCode == http.StatusNotFound && strings.Contains(string(body), ErrUnknownPod.Error()) {
		return nil, ErrUnknownPod
	}
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the daemon answers: %s", bytes.TrimSpace(body))
	}
	return body, nil
}
