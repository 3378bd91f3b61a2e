package plugin

import (
	"os"
	"path/filepath"
	"time"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/gate/wire"
)

// removeNotes removes the notes that processes of the waiting room left for the next process of their pod, if none came:
// the pod was deleted. A note counts until some minutes after the wait that it forecasts. It leaves the file that says
// that there is no daemon: that one counts until a daemon answers.
func removeNotes(o Options, now time.Time) {
	folder := filepath.Join(o.RunDir, wire.NoteFolder)
	notes, err := os.ReadDir(folder)
	if err != nil {
		return // no process has left a note
	}
	for _, note := range notes {
		if info, err := note.Info(); note.Name() != wire.GoneFile && err == nil && now.Sub(info.ModTime()) > 2*o.GateTimeout+10*time.Minute {
			_ = os.Remove(filepath.Join(folder, note.Name())) // the next process of the pod may have taken it
		}
	}
}
