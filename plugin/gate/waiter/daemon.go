package waiter

import (
	"bytes"
	"errors"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

var (
	errClosed  = errors.New("the daemon closed the connection")
	errTooLong = errors.New("the daemon sent a line that is too long")
	errSilent  = errors.New("the daemon does not answer")
)

// daemon is a connection to the daemon. Its methods do not block.
type daemon struct {
	host Host
	fd   int // -1: not connected
	n    int // bytes of buf that were received and are not used yet
	buf  [wire.MaxLine]byte
}

// dial connects and sends the hello.
func (d *daemon) dial(path string, hello []byte) error {
	fd, err := d.host.Connect(path, hello)
	d.fd, d.n = fd, 0
	if err != nil {
		d.fd = -1
	}
	return err
}

func (d *daemon) close() {
	if d.fd >= 0 {
		d.host.Close(d.fd)
	}
	d.fd = -1
}

// receive reads what has arrived and calls answer for each line, until answer returns
// false. After an error the connection cannot be used any more.
func (d *daemon) receive(answer func(wire.Answer) bool) error {
	n, err := d.host.Read(d.fd, d.buf[d.n:])
	switch {
	case errors.Is(err, unix.EAGAIN), errors.Is(err, unix.EINTR):
		return nil
	case err != nil:
		return err
	case n == 0:
		return errClosed
	}
	d.n += n
	rest := d.buf[:d.n]
	for {
		line, after, whole := bytes.Cut(rest, []byte{'\n'})
		if !whole {
			break
		}
		a, err := wire.ParseAnswer(string(line))
		if err != nil {
			return err
		}
		if !answer(a) {
			return nil
		}
		rest = after
	}
	if len(rest) == len(d.buf) {
		return errTooLong
	}
	d.n = copy(d.buf[:], rest)
	return nil
}
