package vm

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// Run runs a command in the guest's shell as root, and returns its standard output without the last
// newline. The error has both outputs.
func (m *Machine) Run(ctx context.Context, command string) (string, error) {
	client, err := m.connect(ctx)
	if err != nil {
		return "", err
	}
	session, err := client.NewSession()
	if err != nil {
		m.forget(client)
		return "", fmt.Errorf("a session with the guest: %w", err)
	}
	defer session.Close()
	var out, complaints strings.Builder
	session.Stdout, session.Stderr = &out, &complaints
	done := make(chan error, 1)
	go func() { done <- session.Run(command) }()
	select {
	case err = <-done:
	case <-ctx.Done():
		m.forget(client)
		return "", fmt.Errorf("in the guest, %s: %w", command, ctx.Err())
	}
	if err != nil {
		if exit := (*ssh.ExitError)(nil); !errors.As(err, &exit) {
			m.forget(client)
		}
		return out.String(), fmt.Errorf("in the guest, %s: %w\n%s%s", command, err, out.String(), complaints.String())
	}
	return strings.TrimSuffix(out.String(), "\n"), nil
}

// Write writes a file in the guest.
func (m *Machine) Write(ctx context.Context, path, text string) error {
	_, err := m.Run(ctx, "mkdir -p $(dirname '"+path+"') && cat >'"+path+"' <<'the end of the file'\n"+text+"\nthe end of the file")
	return err
}

// Dial connects to an address, of the network tcp or unix, as the guest sees it.
func (m *Machine) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	client, err := m.connect(ctx)
	if err != nil {
		return nil, err
	}
	return client.DialContext(ctx, network, address)
}

// connect returns the connection to the guest, or a new one if there is none.
func (m *Machine) connect(ctx context.Context) (*ssh.Client, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client != nil {
		return m.client, nil
	}
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", m.ssh)
	if err != nil {
		return nil, err
	}
	// QEMU accepts before the guest listens, so the guest's greeting may never come.
	if err := conn.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	c, channels, requests, err := ssh.NewClientConn(conn, m.ssh, &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(m.keys.client)},
		HostKeyCallback:   ssh.FixedHostKey(m.keys.server),
		HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("logging in at the guest: %w", err), conn.Close())
	}
	if err := conn.SetDeadline(time.Time{}); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	m.client = ssh.NewClient(c, channels, requests)
	return m.client, nil
}

// forget closes a connection that failed.
func (m *Machine) forget(client *ssh.Client) {
	_ = client.Close() // the connection has failed already
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.client == client {
		m.client = nil
	}
}

func (m *Machine) disconnect() {
	m.mu.Lock()
	client := m.client
	m.mu.Unlock()
	if client != nil {
		m.forget(client)
	}
}
