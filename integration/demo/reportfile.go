package demo

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/pod-pacemaker/pod-pacemaker/integration/demo/report"
)

// reportName is the default file name of the report.
const reportName = "pod-pacemaker-demo.html"

// reportFile is a hidden file beside the report's path. It is created before the herd starts, so
// that a place that cannot be written to is known early.
type reportFile struct {
	path      string
	temporary *os.File
}

func newReportFile(path string, b binaries) (*reportFile, error) {
	if path == "" {
		path = filepath.Join(filepath.Dir(filepath.Dir(b.daemon)), reportName)
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-")
	if err != nil {
		return nil, fmt.Errorf("the report cannot be written: %w; name another place with --report", err)
	}
	return &reportFile{path: path, temporary: f}, nil
}

// write writes the page to the report's path and the timelines beside it as an image, and returns
// the report's path.
func (r *reportFile) write(p report.Page) (string, error) {
	err := errors.Join(
		report.Write(r.temporary, p),
		r.temporary.Chmod(0o644),
		r.temporary.Close(),
		os.Rename(r.temporary.Name(), r.path),
	)
	if err != nil {
		return "", fmt.Errorf("writing the report: %w", err)
	}
	return r.path, r.drawImage(p)
}

// drawImage writes the image, whose name is the report's with .svg.
func (r *reportFile) drawImage(p report.Page) error {
	f, err := os.Create(strings.TrimSuffix(r.path, filepath.Ext(r.path)) + ".svg")
	if err == nil {
		err = errors.Join(report.WriteImage(f, p), f.Close())
	}
	if err != nil {
		return fmt.Errorf("writing the image: %w", err)
	}
	return nil
}

// discard removes the hidden file of a report that was not written.
func (r *reportFile) discard() {
	r.temporary.Close()
	if err := os.Remove(r.temporary.Name()); err != nil && !errors.Is(err, fs.ErrNotExist) {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
}
