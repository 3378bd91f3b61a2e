package keeper

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// youngest is the age below which a folder without a name is taken for a run that is beginning.
const youngest = time.Minute

// Sweep removes the remains of runs below parent whose keeper was killed, and returns these runs.
// It does not touch live runs.
func Sweep(ctx context.Context, parent string) ([]Run, error) {
	if err := sweepUnnamed(parent); err != nil {
		return nil, err
	}
	runs, err := Runs(parent)
	if err != nil {
		return nil, err
	}
	var swept []Run
	for _, run := range runs {
		alive, err := run.Alive()
		if err != nil {
			return swept, err
		}
		if alive {
			continue
		}
		if err := teardown(ctx, run, os.Getpid(), nothingMounted); err != nil {
			return swept, fmt.Errorf("sweeping dead run %s: %w", run.ID, err)
		}
		swept = append(swept, run)
	}
	return swept, nil
}

// nothingMounted is the unmount of a run whose mount namespace is not this process's.
func nothingMounted() error { return nil }

// sweepUnnamed removes folders of runs that died before they got a name.
func sweepUnnamed(parent string) error {
	dirs, err := filepath.Glob(filepath.Join(parent, "."+prefix+"*"))
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		info, err := os.Stat(dir)
		if errors.Is(err, os.ErrNotExist) || (err == nil && time.Since(info.ModTime()) < youngest) {
			continue
		}
		if err := errors.Join(err, os.RemoveAll(dir)); err != nil {
			return err
		}
	}
	return nil
}

// Remains lists what is still on the machine of a run, one line each. Nothing is left if the list
// is empty and the error is nil.
func Remains(run Run) ([]string, error) {
	var left []string
	if _, err := os.Lstat(run.Dir); err == nil {
		left = append(left, "folder "+run.Dir)
	}
	pids, err := members(run)
	if err != nil {
		return left, err
	}
	for _, pid := range pids {
		command, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
		if err != nil {
			continue // the process has ended
		}
		left = append(left, fmt.Sprintf("process %d (%s)", pid, string(command[:max(0, len(command)-1)])))
	}
	points, err := mountsBelow(run.Dir)
	if err != nil {
		return left, err
	}
	for _, point := range points {
		left = append(left, "mount "+point)
	}
	dirs, err := cgroupDirs(run.Cgroup)
	for _, dir := range dirs {
		left = append(left, "cgroup "+dir)
	}
	return left, err
}
