// Package socket makes the unix sockets of the daemon: for root and the daemon's
// own user alone, one daemon at a time, and gone when the daemon is.
package socket
