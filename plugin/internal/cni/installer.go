package cni

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/crd/wholefile"
)

const (
	// lookEvery is how often the folder is looked at.
	lookEvery = 2 * time.Second
	// quietFor is how long the folder has to be left alone after changes that came in
	// quicker succession, until pods may wait again.
	quietFor = time.Minute
	// burst is the time within which changes count as one.
	burst = 6 * time.Second
)

// Options say what to install, and where.
type Options struct {
	// ConfDir is the folder of the CNI configurations, BinDir that of the plugins; absolute, and
	// the same on the host.
	ConfDir, BinDir string
	// Program is the file to copy to BinDir.
	Program string
	// Socket is the daemon's, by its path on the host.
	Socket string
	// Timeout bounds one wait.
	Timeout time.Duration
	// ExemptNamespaces never wait, also where no daemon can say so.
	ExemptNamespaces []string
	Log              logrus.FieldLogger
}

// State says whether pods pass the waiting room.
type State struct {
	// Installed: the configuration is there, and the program can be run.
	Installed bool
	// Source is the configuration that was copied.
	Source string
	// WhyNot says why it is not installed, or why no pod waits although it is.
	WhyNot string
}

// Installer keeps the waiting room installed. Make it with [New]; State and Changes are
// safe for concurrent use with Run.
type Installer struct {
	o      Options
	onShut func(why string)

	mu    sync.Mutex
	state State

	changes atomic.Int64 // of the folder, by others

	size    int64     // of the program; 0: it was not copied yet
	written []byte    // the configuration as it was written; nil: it was not
	gaveUp  string    // why it is not written any more; empty: it is
	last    string    // how the folder looked last; empty: not known
	changed time.Time // when others changed the folder last
	before  time.Time // the time before that
	shut    bool
}

// New returns an installer that tells onShut why no pod may wait, and, with no words, that
// pods may again. It touches nothing.
func New(o Options, onShut func(why string)) *Installer {
	return &Installer{o: o, onShut: onShut, state: State{WhyNot: "the daemon has not looked yet"}}
}

// State returns what is installed now.
func (i *Installer) State() State {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.state
}

// Changes returns how often others changed the folder of the configurations, where changes in quick
// succession count as one.
func (i *Installer) Changes() int { return int(i.changes.Load()) }

// Run keeps the waiting room installed until ctx ends. What it wrote stays.
func (i *Installer) Run(ctx context.Context) error {
	ticker := time.NewTicker(lookEvery)
	defer ticker.Stop()
	for {
		i.Step(time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
	}
}

// Step looks at the folder once, and does what there is to do. It blocks for the reading
// and writing of small files.
func (i *Installer) Step(now time.Time) {
	i.watch(now)
	s := i.keep()
	if s.Installed && i.shut {
		s.WhyNot = shutWords
	}
	i.mu.Lock()
	before := i.state
	i.state = s
	i.mu.Unlock()
	if s == before {
		return
	}
	log := i.o.Log.WithFields(logrus.Fields{"source": s.Source, "why_not": s.WhyNot})
	switch {
	case !s.Installed:
		log.Warn("the waiting room is not installed: pods do not wait before their sandbox")
	case s.WhyNot != "":
		log.Warn("the waiting room is shut for a while")
	default:
		log.Info("the waiting room is installed")
	}
}

const shutWords = "files in the folder of the CNI configurations change again and again: no pod waits there until they have not for a minute"

// watch shuts the room where the folder changes more often than once in a minute.
func (i *Installer) watch(now time.Time) {
	s, err := look(i.o.ConfDir)
	if (err != nil || (i.last != "" && s != i.last)) && now.Sub(i.changed) > burst {
		i.changes.Add(1)
		i.before, i.changed = i.changed, now
	}
	i.last = s
	quiet := now.Sub(i.changed) > quietFor
	often := i.changed.Sub(i.before) < quietFor
	switch {
	case !i.shut && often && !quiet:
		i.shut = true
		i.onShut(shutWords)
	case i.shut && quiet:
		i.shut = false
		i.onShut("")
	}
}

// keep installs what is missing, and takes away what must not be there.
func (i *Installer) keep() State {
	path := filepath.Join(i.o.ConfDir, FileName)
	have, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		have, err = nil, nil
	}
	if err != nil {
		return State{WhyNot: err.Error()}
	}
	if i.gaveUp == "" && i.written != nil && !bytes.Equal(have, i.written) {
		i.gaveUp = "another program or an administrator removed or changed " + FileName + ": it stays so until the daemon is started again"
	}
	if i.gaveUp != "" {
		return State{WhyNot: i.gaveUp}
	}
	source, want, err := i.want()
	if err != nil {
		i.written = nil
		if have != nil {
			err = errors.Join(err, os.Remove(path))
		}
		i.last = "" // our own change counts for nothing
		return State{WhyNot: err.Error()}
	}
	if !bytes.Equal(have, want) {
		if err := wholefile.Write(path, want, 0o600); err != nil {
			return State{WhyNot: err.Error()}
		}
		i.last = ""
	}
	i.written = want
	if source < FileName {
		return State{Source: source, WhyNot: source + " comes before " + FileName + ", so the runtime does not use that"}
	}
	return State{Installed: true, Source: source}
}

// want returns the configuration that should be there, and which one it copies. The program
// is there before.
func (i *Installer) want() (source string, text []byte, err error) {
	if err := i.program(); err != nil {
		return "", nil, err
	}
	if source, err = First(i.o.ConfDir); err != nil {
		return "", nil, err
	}
	given, err := os.ReadFile(filepath.Join(i.o.ConfDir, source))
	if err != nil {
		return "", nil, err
	}
	if text, err = conflist(source, given, i.o.entry()); err != nil {
		return "", nil, fmt.Errorf("%s cannot be copied: %w", source, err)
	}
	return source, text, nil
}

// program makes sure that the host has the plugin, and can run it.
func (i *Installer) program() error {
	target := filepath.Join(i.o.BinDir, ProgramName)
	if info, err := os.Stat(target); i.size == 0 || err != nil || info.Size() != i.size {
		if err := i.copyTo(target); err != nil {
			return err
		}
	}
	if err := unix.Access(target, unix.X_OK); err != nil {
		return fmt.Errorf("%s cannot be executed (is its file system mounted noexec?): %w", target, err)
	}
	return nil
}

// copyTo copies the program, unless it is there already.
func (i *Installer) copyTo(target string) error {
	wanted, err := os.ReadFile(i.o.Program)
	if err != nil {
		return err
	}
	i.size = int64(len(wanted))
	if have, err := os.ReadFile(target); err == nil && bytes.Equal(have, wanted) {
		return nil
	}
	return wholefile.Write(target, wanted, 0o755)
}
