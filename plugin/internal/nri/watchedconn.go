package nri

import (
	"context"
	"net"
	"sync"

	"github.com/sirupsen/logrus"
)

// watchedConn is a connection with a channel that is closed when the connection ends, on either side, and one that is
// closed when the runtime has listed its pods on it.
type watchedConn struct {
	net.Conn
	once   sync.Once
	closed chan struct{}
	listed chan struct{}
}

func (c *watchedConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if err != nil {
		c.ended()
	}
	return n, err
}

func (c *watchedConn) Close() error {
	c.ended()
	return c.Conn.Close()
}

func (c *watchedConn) ended() { c.once.Do(func() { close(c.closed) }) }

// stubLog receives the log of the NRI stub. It logs infos one level lower, because this package logs the same events.
type stubLog struct{ log logrus.FieldLogger }

func (l stubLog) Debugf(_ context.Context, format string, args ...any) { l.log.Debugf(format, args...) }
func (l stubLog) Infof(_ context.Context, format string, args ...any)  { l.log.Debugf(format, args...) }
func (l stubLog) Warnf(_ context.Context, format string, args ...any)  { l.log.Warnf(format, args...) }
func (l stubLog) Errorf(_ context.Context, format string, args ...any) { l.log.Errorf(format, args...) }
