package keeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
)

// Launch begins a run with a folder below parent and starts its keeper, which takes the run down
// when this process ends, however it ends.
func Launch(ctx context.Context, parent string) (*Keeper, error) {
	run, alive, err := newRun(parent)
	if err != nil {
		return nil, err
	}
	defer alive.Close() // the keeper has a copy
	k := &Keeper{Run: run}
	problem, err := k.exec(alive)
	if err == nil && problem != "" {
		err = errors.New(problem)
	}
	if err == nil {
		err = k.connect(ctx)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting the keeper of the run: %w", err), k.abandon())
	}
	return k, nil
}

// exec starts the keeper and waits for its report.
func (k *Keeper) exec(alive *os.File) (problem string, err error) {
	lifelineEnd, lifeline, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer lifelineEnd.Close()
	k.lifeline = lifeline
	report, reportEnd, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer report.Close()
	log, err := os.Create(filepath.Join(k.Run.LogDir(), "keeper.log"))
	if err != nil {
		return "", errors.Join(err, reportEnd.Close())
	}
	defer log.Close()
	cmd := exec.Command("/proc/self/exe", k.Run.Dir)
	cmd.Args[0] = programName
	cmd.Dir = "/"
	// The host's proxy does not apply to the run's servers.
	cmd.Env = append(os.Environ(), "NO_PROXY=*", "no_proxy=*")
	if keep := os.Getenv(logsVariable); keep != "" {
		path, err := filepath.Abs(keep)
		if err != nil {
			return "", errors.Join(err, reportEnd.Close())
		}
		cmd.Env = append(cmd.Env, logsVariable+"="+path)
	}
	cmd.Stdout, cmd.Stderr = log, log
	cmd.ExtraFiles = []*os.File{lifelineEnd, reportEnd, alive}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Cloneflags: syscall.CLONE_NEWNS}
	err = cmd.Start()
	if err := errors.Join(err, reportEnd.Close()); err != nil {
		return "", err
	}
	k.process = cmd
	text, err := io.ReadAll(report)
	return string(text), err
}

// abandon ends a keeper that did not come up, and removes the folder.
func (k *Keeper) abandon() error {
	var err error
	if k.lifeline != nil {
		err = k.lifeline.Close()
	}
	if k.process != nil {
		// The keeper has reported why it failed. Its exit code adds nothing.
		_ = k.process.Wait()
	}
	return errors.Join(err, teardown(context.Background(), k.Run, os.Getpid(), nothingMounted))
}
