package main

import (
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// noteLasts is how long a note is valid after its time to leave.
const noteLasts = 5 * time.Minute

// note is a file of a pod. A process that has to leave the waiting room writes down since when
// the pod waits, and the forecast that the daemon sent last, or else when it would have left without
// a daemon: a hello and a forecast of the protocol. The next process of the pod reads it,
// and keeps to it if it finds no daemon. So a pod starts also if its processes never have the time
// to wait for a daemon, because the folder changes again and again.
type note struct{ folder, path string }

// noteFolder returns the folder of the notes, beside the daemon's socket.
func noteFolder(socket string) string {
	return socket[:strings.LastIndexByte(socket, '/')+1] + wire.NoteFolder
}

func noteOf(socket, uid string) note {
	folder := noteFolder(socket)
	if uid == "" || strings.ContainsAny(uid, "/.") {
		return note{}
	}
	return note{folder, folder + "/" + uid}
}

// take reads the note and removes it. since is zero if there is no note, or an invalid one.
func (n note) take(now time.Time) (since time.Time, forecast wire.Answer) {
	fd, err := unix.Open(n.path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return time.Time{}, wire.Answer{}
	}
	defer unix.Close(fd)
	_ = unix.Unlink(n.path) // the next process writes it again
	var text [2 * wire.MaxLine]byte
	size, err := unix.Read(fd, text[:])
	if err != nil {
		return time.Time{}, wire.Answer{}
	}
	first, second, _ := strings.Cut(strings.TrimSuffix(string(text[:size]), "\n"), "\n")
	hello, badHello := wire.ParseHello(first)
	forecast, badForecast := wire.ParseAnswer(second)
	if badHello != nil || badForecast != nil || now.After(forecast.LeaveAt.Add(noteLasts)) || hello.Since.After(now) {
		return time.Time{}, wire.Answer{}
	}
	return hello.Since, forecast
}

// leave writes the note, if possible.
func (n note) leave(hello wire.Hello, forecast wire.Answer) {
	if n.path == "" {
		return
	}
	forecast.Place = 0               // the next process has a place of its own
	_ = os.MkdirAll(n.folder, 0o700) // after an error the note cannot be written either
	if os.WriteFile(n.path, wire.AppendAnswer(wire.AppendHello(nil, hello), forecast), 0o600) != nil {
		_ = os.Remove(n.path) // it is not complete
	}
}
