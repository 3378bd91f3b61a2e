package demo

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/images"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// buildHerd writes the program of the herd's image to path. It builds the image if the cache does
// not hold it.
func buildHerd(ctx context.Context, path string) error {
	dir, err := lab.CacheDir()
	if err != nil {
		return err
	}
	image, err := images.Build(ctx, build.Cache{Dir: dir}, images.Herd)
	if err != nil {
		return fmt.Errorf("%w (POD_PACEMAKER_CACHE names another folder for the build cache, GOCACHE one for Go's own)", err)
	}
	if err := extract(image, "herd", path); err != nil {
		return fmt.Errorf("taking the herd's program out of its image: %w", err)
	}
	return nil
}

// extract copies a file of an image and makes it executable.
func extract(image, name, path string) (err error) {
	img, err := tarball.ImageFromPath(image, nil)
	if err != nil {
		return err
	}
	flat := mutate.Extract(img)
	defer func() { err = errors.Join(err, flat.Close()) }()
	files := tar.NewReader(flat)
	for {
		header, err := files.Next()
		if err != nil {
			return fmt.Errorf("looking for %s: %w", name, err)
		}
		if header.Name == name {
			return writeProgram(path, files)
		}
	}
}

func writeProgram(path string, content io.Reader) (err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	_, err = io.Copy(f, content)
	return err
}
