package keeper

import (
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// prefix begins the name of every run's folder and cgroup.
const prefix = "pod-pacemaker-lab-"

// maxDir keeps the paths of unix sockets below a run's folder within the 107 bytes that the kernel
// allows.
const maxDir = 60

// Run names one run of the lab. It is a plain value: it can be stored and compared, and it stays
// meaningful after the run's end.
type Run struct {
	// ID distinguishes runs. It has eight hexadecimal digits.
	ID string
	// Dir is the run's folder. Its path is short enough for unix sockets.
	Dir string
	// Cgroup is the parent of all of the run's cgroups in every hierarchy, as a path from the
	// hierarchy's mount point: "/...".
	Cgroup string
}

// LogDir is the folder of the log files, one for each service.
func (r Run) LogDir() string { return filepath.Join(r.Dir, "logs") }

func (r Run) socket() string    { return filepath.Join(r.Dir, "keeper.sock") }
func (r Run) aliveFile() string { return filepath.Join(r.Dir, "alive") }

// runAt returns the run whose folder is dir.
func runAt(dir string) (Run, error) {
	id, ok := strings.CutPrefix(filepath.Base(dir), prefix)
	if !ok || len(id) != 8 || strings.Trim(id, "0123456789abcdef") != "" {
		return Run{}, fmt.Errorf("%s is not the folder of a run: its name is not %s and eight hexadecimal digits", dir, prefix)
	}
	return Run{ID: id, Dir: dir, Cgroup: "/" + prefix + id}, nil
}

// newRun creates a run's folder below parent. The returned file holds the lock of a live run. Every
// process that inherits the file keeps the run alive.
func newRun(parent string) (Run, *os.File, error) {
	var id [4]byte
	if _, err := rand.Read(id[:]); err != nil {
		return Run{}, nil, err
	}
	run, err := runAt(filepath.Join(parent, fmt.Sprintf("%s%x", prefix, id)))
	if err != nil {
		return Run{}, nil, err
	}
	if len(run.Dir) > maxDir {
		return Run{}, nil, fmt.Errorf("%s is too long for unix sockets below it: set TMPDIR to a shorter folder", run.Dir)
	}
	// The folder gets its name once it is locked, so that Sweep does not take a new run for a dead
	// one.
	unnamed, err := os.MkdirTemp(parent, "."+prefix)
	if err != nil {
		return Run{}, nil, fmt.Errorf("making the run's folder: %w", err)
	}
	alive, err := os.Create(filepath.Join(unnamed, filepath.Base(run.aliveFile())))
	if err == nil {
		err = errors.Join(
			unix.Flock(int(alive.Fd()), unix.LOCK_EX|unix.LOCK_NB),
			os.Mkdir(filepath.Join(unnamed, "logs"), 0o755),
			os.Chmod(unnamed, 0o755),
			os.Rename(unnamed, run.Dir),
		)
	}
	if err != nil {
		return Run{}, nil, errors.Join(fmt.Errorf("making the run's folder: %w", err), os.RemoveAll(unnamed))
	}
	return run, alive, nil
}

// Runs lists the runs below parent, dead or alive.
func Runs(parent string) ([]Run, error) {
	dirs, err := filepath.Glob(filepath.Join(parent, prefix+"*"))
	if err != nil {
		return nil, err
	}
	var runs []Run
	for _, dir := range dirs {
		if run, err := runAt(dir); err == nil {
			runs = append(runs, run)
		}
	}
	return runs, nil
}

// Alive reports whether the run's keeper lives.
func (r Run) Alive() (bool, error) {
	f, err := os.Open(r.aliveFile())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether run %s is alive: %w", r.ID, err)
	}
	defer f.Close()
	err = unix.Flock(int(f.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("asking whether run %s is alive: %w", r.ID, err)
	}
	return false, nil
}
