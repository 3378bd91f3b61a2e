package nri

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sirupsen/logrus"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
)

const (
	// endsWithin is how long after the end of a connection the end of the runtime shows, at most.
	endsWithin = time.Second
	// endsSoon is how soon after the registration a runtime ends that cannot list its pods, at most: it lists them at once,
	// but after a stop that is under way. Whoever restarts a runtime that such a stop blocks does so later. An end after such a
	// stop does not count, and the next one does.
	endsSoon = 10 * time.Second
)

// endWaits are how long the daemon stays away after the first, the second and each later end in a row.
var endWaits = [...]time.Duration{10 * time.Minute, time.Hour, 6 * time.Hour}

// ends knows whether the runtime ended while it registered the daemon, and keeps that in a file. Another such end may
// follow from the same pods, so the daemon stays away for a while, also after a restart of the node, of the runtime or of
// the daemon; a power cut during a registration may lose that. The note is written before each registration and removed when the runtime has listed its pods. A note that
// a later daemon finds counts as an end if that runtime is gone, and the node did not boot meanwhile, which ends every
// runtime: so the daemon does not wait for the disk while the runtime waits for it. It is not safe for concurrent use.
type ends struct {
	path string // of the file; empty if the ends are forgotten when the daemon ends
	boot string // the kernel's ID of this boot; empty if it is not known
	log  logrus.FieldLogger

	note endsNote
}

// endsNote is the content of the file.
type endsNote struct {
	Ends        int       `json:"ends"`        // in a row
	At          time.Time `json:"at"`          // when the daemon registered last
	Registering string    `json:"registering"` // the socket at which it registers now; empty if it does not
	Boot        string    `json:"boot"`        // in which it registers
}

// load reads the file. gone reports whether the runtime that had this socket has ended.
func (e *ends) load(now time.Time, gone func(socket string) bool) {
	if e.path == "" {
		return
	}
	content, err := os.ReadFile(e.path)
	if err == nil {
		err = json.Unmarshal(content, &e.note)
	}
	if err != nil {
		if !errors.Is(err, fs.ErrNotExist) {
			e.log.WithError(err).Warn("the note of the last registration cannot be read")
		}
		return
	}
	if e.note.At.After(now) { // the clock was set back
		e.note.At = now
	}
	if e.note.Registering != "" {
		e.over(e.note.Boot == e.boot && gone(e.note.Registering))
	}
}

// begin notes that the daemon registers at the socket now.
func (e *ends) begin(now time.Time, socket string) {
	e.note.At, e.note.Registering, e.note.Boot = now, socket, e.boot
	e.write(wholefile.WriteSoon)
}

// over notes that the registration is over, and whether the runtime ended before it had listed its pods.
func (e *ends) over(ended bool) {
	e.note.Registering, e.note.Boot = "", ""
	if ended {
		e.note.Ends++
	}
	e.write(wholefile.Write)
}

// listed notes that the runtime has listed its pods.
func (e *ends) listed() {
	if e.note != (endsNote{}) {
		e.note = endsNote{}
		e.write(wholefile.Write)
	}
}

func (e *ends) write(put func(string, []byte, fs.FileMode) error) {
	if e.path == "" {
		return
	}
	var err error
	if e.note.Ends == 0 && e.note.Registering == "" {
		err = wholefile.Remove(e.path)
	} else {
		content, _ := json.Marshal(e.note) // it has no type that fails
		if err = os.MkdirAll(filepath.Dir(e.path), 0o700); err == nil {
			err = put(e.path, content, 0o600)
		}
	}
	if err != nil {
		e.log.WithError(err).Warn("the note of the registration cannot be written: after a restart, the daemon would not know that the runtime ended")
	}
}

// recent returns why the daemon must not register at now, or nil if it may. An administrator may remove the file.
func (e *ends) recent(now time.Time) error {
	if e.note.Ends <= 0 {
		return nil
	}
	if e.path != "" {
		if _, err := os.Lstat(e.path); errors.Is(err, fs.ErrNotExist) {
			e.note = endsNote{}
			return nil
		}
	}
	until := e.note.At.Add(endWaits[min(e.note.Ends, len(endWaits))-1])
	if !now.Before(until) {
		return nil
	}
	how := "restart the daemon to register now"
	if e.path != "" {
		how = "remove " + e.path + " to register now"
	}
	text := fmt.Sprintf("waiting to register: the runtime ended while it registered the daemon (%d times in a row), so the daemon stays away until %s; %s; pods start unpaced meanwhile",
		e.note.Ends, until.UTC().Format(time.RFC3339), how)
	return &delayed{RuntimeEnded, text, text, logrus.Fields{"ends": e.note.Ends, "until": until}}
}

// socketID names the socket at the path, which each runtime makes anew; empty if there is none.
func socketID(path string) string {
	info, err := os.Stat(path)
	if err != nil {
		return ""
	}
	inode := uint64(0)
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		inode = stat.Ino
	}
	return fmt.Sprintf("%d %d", inode, info.ModTime().UnixNano())
}

// gone reports whether the runtime that listened at this socket has ended. It blocks for endsWithin if it has not. A
// killed runtime leaves its socket, and the next one makes another.
func (c *Connection) gone(ctx context.Context, socket string) bool {
	err := wait.PollUntilContextTimeout(ctx, endsWithin/4, endsWithin, true, func(ctx context.Context) (ended bool, _ error) {
		if socketID(c.options.Socket) != socket {
			return true, nil
		}
		conn, err := c.options.Dial(ctx, c.options.Socket)
		if err != nil {
			return nobodyListens(err), nil
		}
		return false, conn.Close()
	})
	return err == nil
}
