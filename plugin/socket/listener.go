package socket

import "net"

// Listener is the daemon's end of a socket; made by [Listen]. Its methods are safe
// for concurrent use. To close it removes the socket.
type Listener struct {
	*net.UnixListener
	uid        uint32 // whose connections are let in beside root's
	turnedAway func(error)
}

// Accept waits for a connection of root or of the user of this process. Those of
// others are closed at once: the mode of the socket keeps them out already, and
// this holds also where the mode was changed. The connection is a
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
