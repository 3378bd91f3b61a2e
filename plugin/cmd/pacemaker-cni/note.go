package main

import (
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	// noteFolder is beside the daemon's socket.
	noteFolder = "room"
	// noteLasts is for how long after its time to leave a note is of use.
	noteLasts = 5 * time.Minute
)

// turn is what a daemon told a process that had to leave: the next one that waits for the
// same pod goes by it if the daemon says no more.
type turn struct {
	leaveAt time.Time
	pace    time.Duration
	since   time.Time // since when the pod waits
}

// note is where that is kept from one process to the next: a file of the pod. Without it
// the pod's place is known to the daemon only.
type note struct{ folder, path string }

func noteOf(socket, uid string) note {
	folder := socket[:strings.LastIndexByte(socket, '/')+1] + noteFolder
	if uid == "" || strings.ContainsAny(uid, "/.") {
		return note{}
	}
	return note{folder, folder + "/" + uid}
}

// take returns what was noted, and removes it. Zero: nothing was, or it is of no use.
func (n note) take(now time.Time) (t turn) {
	fd, err := unix.Open(n.path, unix.O_RDONLY|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	if err != nil {
		return turn{}
	}
	defer unix.Close(fd)
	_ = unix.Unlink(n.path) // the next process makes it anew
	var text [128]byte
	size, err := unix.Read(fd, text[:])
	if err != nil {
		return turn{}
	}
	var numbers [3]int64
	words := strings.Fields(string(text[:size]))
	if len(words) != len(numbers) {
		return turn{}
	}
	for i, word := range words {
		if numbers[i], err = strconv.ParseInt(word, 10, 64); err != nil || numbers[i] < 0 {
			return turn{}
		}
	}
	t = turn{time.UnixMilli(numbers[0]), time.Duration(numbers[1]) * time.Millisecond, time.UnixMicro(numbers[2])}
	if now.After(t.leaveAt.Add(noteLasts)) || t.since.After(now) {
		return turn{}
	}
	return t
}

// leave notes a turn, if it can.
func (n note) leave(t turn) {
	if n.path == "" {
		return
	}
	_ = unix.Mkdir(n.folder, 0o700) // it is there already, or nothing can be noted
	fd, err := unix.Open(n.path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	text := strconv.FormatInt(t.leaveAt.UnixMilli(), 10) + " " + strconv.FormatInt(t.pace.Milliseconds(), 10) + " " +
		strconv.FormatInt(t.since.UnixMicro(), 10) + "\n"
	if _, err := unix.Write(fd, []byte(text)); err != nil {
		_ = unix.Unlink(n.path) // half a note is none
	}
}
