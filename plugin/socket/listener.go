package socket

import (
	"errors"
	"net"
	"os"
)

// Listener is the daemon's end of a socket; made by [Listen]. Its methods are safe
// for concurrent use. To close it removes the socket, unless another took its
// place meanwhile.
type Listener struct {
	*net.UnixListener
	path       string
	made       os.FileInfo
	uid        uint32 // whose connections are let in beside root's
	turnedAway func(error)
}

func own(l *net.UnixListener, path string) (*Listener, error) {
	l.SetUnlinkOnClose(false) // it would remove a successor's socket
	made, err := os.Lstat(path)
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &Listener{UnixListener: l, path: path, made: made, uid: uint32(os.Geteuid())}, nil
}

// Accept waits for a connection of root or of the user of this process. Those of
// others are closed at once: the mode of the socket keeps them out already, and
// this holds also where somebody has changed the mode. The connection is a
// [*net.UnixConn].
func (l *Listener) Accept() (net.Conn, error) {
	for {
		c, err := l.AcceptUnix()
		if err != nil {
			return nil, err
		}
		err = checkPeer(c, l.uid)
		if err == nil {
			return c, nil
		}
		l.turnedAway(err)
		_ = c.Close() // nothing was written that could be lost
	}
}

// Close implements [net.Listener].
func (l *Listener) Close() error {
	if now, err := os.Lstat(l.path); err == nil && os.SameFile(l.made, now) {
		if err := os.Remove(l.path); err != nil {
			return errors.Join(err, l.UnixListener.Close())
		}
	}
	return l.UnixListener.Close()
}
