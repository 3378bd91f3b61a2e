package cni

import (
	"bytes"
	"cmp"
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
	// Use is UseAuto or UseOn.
	Use Use
	// ConfDir is the folder of the CNI configurations and BinDir the folder of the plugins. Both paths are absolute, and
	// the same in the daemon's container and on the host.
	ConfDir, BinDir string
	// Program is the file to copy to BinDir.
	Program string
	// Socket is the path of the daemon's socket on the host.
	Socket string
	// Timeout is the longest wait of a pod.
	Timeout time.Duration
	// Answers is closed once the daemon answers pods at Socket. Until then, the installer writes no configuration where
	// there is none: each pod would wait for some seconds in vain.
	Answers <-chan struct{}
	Log     logrus.FieldLogger
}

// State says whether the waiting room is installed.
type State struct {
	// Installed reports whether the configuration is in place and the program can be executed.
	Installed bool
	// CopiedFrom is the name of the CNI configuration that was copied; empty if none was.
	CopiedFrom string
	// WhyNot is why the room is not installed, or why no pod waits although it is. It is empty if pods wait.
	WhyNot string
}

// Installer keeps the waiting room installed. Make it with [New]. State, Changes, Came and Made are safe for concurrent
// use with Run.
type Installer struct {
	o      Options
	onShut func(why string)

	state    atomic.Pointer[State]
	changes  atomic.Int64              // of the folder, by others
	open     atomic.Pointer[time.Time] // since when the room is installed and the daemon answers; nil if not
	came     atomic.Bool               // a pod has come to the room
	passedBy atomic.Int64              // pods that have not

	size    int64     // of the program when it was copied; 0 if it was not. A new one is for the next daemon
	written []byte    // the configuration that the installer wrote; nil if it wrote none
	gaveUp  string    // why the installer does not write the configuration any more; empty if it does
	last    string    // result of the last look; empty if that is not known
	changed time.Time // when others changed the folder last
	before  time.Time // when others changed the folder the time before
	shut    bool

	shutSince time.Time
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
	s := i.reconcile(now)
	if s.Installed && i.shut {
		s.WhyNot = whyShut
	}
	switch was := i.open.Load(); {
	case !s.Installed || !i.answers():
		i.open.Store(nil)
	case was == nil:
		i.open.Store(&now)
	}
	if *i.state.Swap(&s) == s || s.WhyNot == whyNotYet { // so it is at each start of a daemon
		return
	}
	fault := i.o.Log.WithField(logrus.ErrorKey, s.WhyNot)
	switch {
	case !s.Installed && i.o.Use == UseAuto:
		fault.Info("--cni=auto installs no waiting room on this node: pods do not wait before their sandbox")
	case !s.Installed:
		fault.Warn("the waiting room is not installed: pods do not wait before their sandbox")
	case s.WhyNot != "":
		fault.Warn("no pod enters the waiting room for a while")
	default:
		i.o.Log.WithField("copied_from", s.CopiedFrom).Info("the waiting room is installed, with a copy of " + s.CopiedFrom)
	}
}

const whyNotYet = "the daemon does not answer pods yet"

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
		i.shut, i.shutSince = true, now
		i.onShut(whyShut)
	case i.shut && quiet:
		i.shut = false
		i.onShut("")
	}
}

// reconcile installs what is missing, and removes a configuration that must not be in place.
func (i *Installer) reconcile(now time.Time) State {
	path := filepath.Join(i.o.ConfDir, FileName)
	have, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		have, err = nil, nil
	}
	if err != nil {
		return State{WhyNot: err.Error()}
	}
	_, ends := endsWithUs(have)
	if i.gaveUp == "" && (i.written != nil && !bytes.Equal(have, i.written) || have != nil && !ends) {
		i.gaveUp = "another program or an administrator removed or changed " + FileName + ": to have it written again, remove it and restart the daemon"
	}
	if i.gaveUp != "" {
		if i.o.Use == UseAuto && have != nil {
			return i.takeOut(errors.New(i.gaveUp))
		}
		why := i.gaveUp
		if refers(have) { // the runtime calls the program
			if err := i.program(); err != nil {
				why += "; " + err.Error()
			}
		}
		return State{WhyNot: why}
	}
	if have == nil && !i.answers() {
		return State{WhyNot: whyNotYet}
	}
	source, want, err := i.want(now)
	if err != nil {
		i.written = nil
		if have == nil {
			return State{WhyNot: err.Error()}
		}
		return i.takeOut(err)
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

// answers reports whether the daemon answers pods.
func (i *Installer) answers() bool {
	select {
	case <-i.o.Answers:
		return true
	default:
		return false
	}
}

// takeOut removes the configuration, for a reason.
func (i *Installer) takeOut(why error) State {
	if failed := removeConfiguration(i.o.ConfDir); failed != nil {
		why = fmt.Errorf("%w; %w", why, failed)
	}
	i.last = "" // our own change does not count
	return State{WhyNot: why.Error()}
}

// want returns the configuration that should be in place, and the name of the one that it copies. It installs the
// program.
func (i *Installer) want(now time.Time) (source string, text []byte, err error) {
	if i.o.Use == UseAuto {
		if err := cmp.Or(i.restless(now), i.unused()); err != nil {
			return "", nil, err
		}
	}
	if source, text, err = i.o.Plan(); err != nil {
		return "", nil, err
	}
	return source, text, i.program()
}

// Plan returns the configuration that an installer with these options writes, and the name of the one that it copies. It
// changes nothing. The error is why the installer writes none.
func (o Options) Plan() (source string, text []byte, err error) {
	if source, err = First(o.ConfDir); err != nil {
		return "", nil, err
	}
	if source < FileName {
		return "", nil, fmt.Errorf("%s comes before %s, so the runtime would not use that", source, FileName)
	}
	given, err := os.ReadFile(filepath.Join(o.ConfDir, source))
	if err == nil && o.Use == UseAuto {
		err = o.against(given)
	}
	if err != nil {
		return "", nil, err
	}
	if text, err = o.conflist(source, given); err != nil {
		return "", nil, fmt.Errorf("%s cannot be copied: %w", source, err)
	}
	return source, text, nil
}

// program makes sure that the program is on the host and can be executed.
func (i *Installer) program() error {
	target := filepath.Join(i.o.BinDir, ProgramName)
	if !wholefile.Kept(target, i.size) {
		if _, err := wholefile.Install(i.o.Program, target); err != nil {
			return err
		}
		have, err := os.Stat(target)
		if err != nil {
			return err
		}
		i.size = have.Size()
	}
	return Runnable(i.o.BinDir)
}

// Runnable returns an error if the program in dir is missing or cannot be executed. A configuration that names it then
// keeps every pod from starting.
func Runnable(dir string) error {
	target := filepath.Join(dir, ProgramName)
	if err := unix.Access(target, unix.X_OK); err != nil {
		return fmt.Errorf("%s cannot be executed (is its file system mounted noexec?): %w", target, err)
	}
	return nil
}
