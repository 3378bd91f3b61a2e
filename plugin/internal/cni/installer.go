package cni

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/sirupsen/logrus"
	"golang.org/x/sys/unix"

	"github.com/pod-pacemaker/pod-pacemaker/plugin/wholefile"
)

const (
	// lookEvery is the time between two looks at the folder.
	lookEvery = 2 * time.Second
	// quietFor is how long the folder must not change before pods may wait again, once it has changed twice in
	// less than that time.
	quietFor = time.Minute
	// burst is the time within which several changes count as one.
	burst = 6 * time.Second
	// settleFor is for how long after a change of the folder no pod begins to wait. The runtime reads the folder again
	// for each event of a change, one after the other, and each time waits for every ADD that began meanwhile. kubelet
	// tries the pods that have left at the change no sooner than this.
	settleFor = 10 * time.Second
)

// Options say what to install, and where.
type Options struct {
	// ConfDir is the folder of the CNI configurations and BinDir that of the plugins. Both paths are absolute, and
	// the same in the daemon's container and on the host.
	ConfDir, BinDir string
	// Program is the file to copy to BinDir.
	Program string
	// Socket is the path of the daemon's socket on the host.
	Socket string
	// Timeout is the longest wait of a pod.
	Timeout time.Duration
	// Connected is closed once the daemon is connected to the runtime. Until then, the installer writes no
	// configuration where there is none: the daemon does not answer yet, so each pod would wait for some seconds in
	// vain.
	Connected <-chan struct{}
	Log       logrus.FieldLogger
}

// State says whether the waiting room is installed.
type State struct {
	// Installed reports whether the configuration is in place and the program can be executed.
	Installed bool
	// CopiedFrom is the name of the CNI configuration that was copied; empty: none was.
	CopiedFrom string
	// WhyNot is why the room is not installed, or why no pod waits although it is. Empty: pods wait.
	WhyNot string
}

// Installer keeps the waiting room installed. Make it with [New]. State and Changes are safe for concurrent use
// with Run.
type Installer struct {
	o      Options
	onShut func(why string)

	state   atomic.Pointer[State]
	changes atomic.Int64 // of the folder, by others

	size    int64     // of the program when it was copied; 0: it was not. A new one is for the next daemon
	written []byte    // the configuration that the installer wrote; nil: it wrote none
	gaveUp  string    // why the installer does not write the configuration any more; empty: it does
	last    string    // result of the last look; empty: not known
	changed time.Time // when others changed the folder last
	before  time.Time // when others changed the folder the time before
	shut    bool
}

// New returns an installer. Run and Step call onShut with the reason when no pod may wait in the room, and with an
// empty string when pods may wait again. New changes nothing on the node.
func New(o Options, onShut func(why string)) *Installer {
	i := &Installer{o: o, onShut: onShut}
	i.state.Store(&State{WhyNot: "the daemon has not checked yet"})
	return i
}

// State returns the state after the last Step.
func (i *Installer) State() State { return *i.state.Load() }

// Changes returns how often others changed the folder of the configurations. Changes in quick succession count as one.
func (i *Installer) Changes() int { return int(i.changes.Load()) }

// Run keeps the waiting room installed until ctx ends. It leaves the files in place.
func (i *Installer) Run(ctx context.Context) error {
	for tick := time.Tick(lookEvery); ; {
		i.Step(time.Now())
		select {
		case <-ctx.Done():
			return nil
		case <-tick:
		}
	}
}

// Step looks at the folder once, and installs, updates or removes the files as needed. It blocks while it reads and
// writes them.
func (i *Installer) Step(now time.Time) {
	i.watch(now)
	s := i.reconcile()
	if s.Installed && i.shut {
		s.WhyNot = whyShut
	}
	if *i.state.Swap(&s) == s {
		return
	}
	fault := i.o.Log.WithField(logrus.ErrorKey, s.WhyNot)
	switch {
	case !s.Installed:
		fault.Warn("the waiting room is not installed: pods do not wait before their sandbox")
	case s.WhyNot != "":
		fault.Warn("no pod enters the waiting room for a while")
	default:
		i.o.Log.WithField("copied_from", s.CopiedFrom).Info("the waiting room is installed, with a copy of " + s.CopiedFrom)
	}
}

const whyShut = "the files in the folder of the CNI configurations keep changing: no pod waits in the room until they have not changed for a minute"

// watch counts the changes of the folder by others, and shuts the room while there is more than one in a minute.
func (i *Installer) watch(now time.Time) {
	s, err := look(i.o.ConfDir)
	if i.last != "" && (err != nil || s != i.last) && now.Sub(i.changed) > burst {
		i.changes.Add(1)
		i.before, i.changed = i.changed, now
	}
	i.last = s
	quiet := now.Sub(i.changed) > quietFor
	often := i.changed.Sub(i.before) < quietFor
	switch {
	case !i.shut && often && !quiet:
		i.shut = true
		i.onShut(whyShut)
	case i.shut && quiet:
		i.shut = false
		i.onShut("")
	}
}

// reconcile installs what is missing, and removes a configuration that must not be in place.
func (i *Installer) reconcile() State {
	path := filepath.Join(i.o.ConfDir, FileName)
	have, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		have, err = nil, nil
	}
	if err != nil {
		return State{WhyNot: err.Error()}
	}
	if i.gaveUp == "" && (i.written != nil && !bytes.Equal(have, i.written) || have != nil && !endsWithUs(have)) {
		i.gaveUp = "another program or an administrator removed or changed " + FileName + ": to have it written again, remove it and restart the daemon"
	}
	if i.gaveUp != "" {
		why := i.gaveUp
		if refers(have) { // the runtime calls the program
			if err := i.program(); err != nil {
				why += "; " + err.Error()
			}
		}
		return State{WhyNot: why}
	}
	select {
	case <-i.o.Connected:
	default:
		if have == nil {
			return State{WhyNot: "the daemon is not connected to the runtime yet"}
		}
	}
	source, want, err := i.want()
	if err != nil {
		i.written = nil
		if have != nil {
			if failed := removeConfiguration(i.o.ConfDir); failed != nil {
				err = fmt.Errorf("%w; %w", err, failed)
			}
		}
		i.last = "" // our own change does not count
		return State{WhyNot: err.Error()}
	}
	if !bytes.Equal(have, want) {
		if err := wholefile.Write(path, want, 0o600); err != nil {
			return State{WhyNot: err.Error()}
		}
		i.last = ""
	}
	i.written = want
	return State{Installed: true, CopiedFrom: source}
}

// want returns the configuration that should be in place, and the name of the one that it copies. It installs the
// program.
func (i *Installer) want() (source string, text []byte, err error) {
	if source, err = First(i.o.ConfDir); err != nil {
		return "", nil, err
	}
	if source < FileName {
		return "", nil, fmt.Errorf("%s comes before %s, so the runtime would not use that", source, FileName)
	}
	given, err := os.ReadFile(filepath.Join(i.o.ConfDir, source))
	if err != nil {
		return "", nil, err
	}
	if text, err = i.o.conflist(source, given); err != nil {
		return "", nil, fmt.Errorf("%s cannot be copied: %w", source, err)
	}
	return source, text, i.program()
}

// program makes sure that the program is on the host and can be executed.
func (i *Installer) program() error {
	target := filepath.Join(i.o.BinDir, ProgramName)
	if have, err := os.Stat(target); i.size == 0 || err != nil || have.Size() != i.size {
		if _, err := wholefile.Install(i.o.Program, target); err != nil {
			return err
		}
		if have, err = os.Stat(target); err != nil {
			return err
		}
		i.size = have.Size()
	}
	if err := unix.Access(target, unix.X_OK); err != nil {
		return fmt.Errorf("%s cannot be executed (is its file system mounted noexec?): %w", target, err)
	}
	return nil
}
