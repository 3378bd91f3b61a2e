package demo

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// binaries are the absolute paths of the project's two programs.
type binaries struct {
	daemon, gate string
}

// findBinaries looks for both programs in dir. If dir is empty, it looks where make build leaves
// them, seen from the repository's top or from integration/.
func findBinaries(dir string) (binaries, error) {
	places := []string{dir}
	if dir == "" {
		places = []string{"bin", filepath.Join("..", "bin")}
	}
	for _, place := range places {
		place, err := filepath.Abs(place)
		if err != nil {
			return binaries{}, err
		}
		b := binaries{daemon: filepath.Join(place, "pod-pacemaker"), gate: filepath.Join(place, "pacemaker-gate")}
		if isFile(b.daemon) && isFile(b.gate) {
			return b, nil
		}
	}
	if dir == "" {
		return binaries{}, errors.New("there is no bin/pod-pacemaker with bin/pacemaker-gate here: run make demo at the top of the repository, or name their folder with --bin")
	}
	return binaries{}, fmt.Errorf("there is no pod-pacemaker with pacemaker-gate in %s: run make build, and name its bin folder with --bin", dir)
}

func isFile(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular()
}
