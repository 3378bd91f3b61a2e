package socket

import (
	"errors"
	"fmt"
	"net"

	"golang.org/x/sys/unix"
)

// checkPeer makes sure that the other end of c may talk to a daemon that runs as
// uid.
func checkPeer(c *net.UnixConn, uid uint32) error {
	raw, err := c.SyscallConn()
	if err != nil {
		return fmt.Errorf("who is there: %w", err)
	}
	var cred *unix.Ucred
	var credErr error
	err = raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	})
	if err := errors.Join(err, credErr); err != nil {
		return fmt.Errorf("who is there: %w", err)
	}
	if !peerAllowed(cred.Uid, uid) {
		return fmt.Errorf("process %d of user %d is neither root nor user %d", cred.Pid, cred.Uid, uid)
	}
	return nil
}

// peerAllowed lets in root, as which container runtimes run hooks and
// administrators ask, and the daemon's own user.
func peerAllowed(peer, daemon uint32) bool { return peer == 0 || peer == daemon }
