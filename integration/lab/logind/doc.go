// Package logind stands in for systemd-logind and a node's system bus, for the part of both that a
// kubelet needs to shut its node down gracefully.
//
// It shuts no machine down. There is one service on the bus. Of logind's interface there are
// Inhibit, InhibitDelayMaxUSec and PrepareForShutdown, the signal that a shutdown begins. Every
// other request gets the error with which a bus answers unknown requests. The protocol is the real
// one: D-Bus 1.0 over a unix socket, SASL EXTERNAL, passed file descriptors. A lock has its real
// meaning, too: it is held until the last copy of its descriptor is closed, however its holder
// ends, and delays a shutdown for at most InhibitDelayMaxUSec.
//
//   - https://dbus.freedesktop.org/doc/dbus-specification.html
//   - https://systemd.io/INHIBITOR_LOCKS
//   - https://www.freedesktop.org/software/systemd/man/latest/org.freedesktop.login1.html
package logind
