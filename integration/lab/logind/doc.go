// Package logind stands in for systemd-logind and the system bus of a node, for
// the part of both that a kubelet needs to shut its node down gracefully.
//
// It is a stand-in: no machine is shut down, there is one service on the bus, and
// of logind's interface there are Inhibit, InhibitDelayMaxUSec and
// PrepareForShutdown, which says that a shutdown begins. Whatever else is asked is answered with the error with which a
// bus answers what it does not know. The protocol is the real one (D-Bus 1.0 over a unix
// socket, SASL EXTERNAL, file descriptors passed along), and so is what a lock means:
// it is held until the last copy of the descriptor is closed, by whatever end of its
// holder, and delays a shutdown for InhibitDelayMaxUSec at most.
//
//   - https://dbus.freedesktop.org/doc/dbus-specification.html
//   - https://systemd.io/INHIBITOR_LOCKS
//   - https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.login1.html
package logind
