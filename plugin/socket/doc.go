// Package socket makes the unix sockets of the daemon: for root and the daemon's
// own user alone, and gone when the daemon is.
package socket
