// Package images builds the lab's container images, only from static Go programs.
package images

import (
	"archive/tar"
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
)

const (
	// Pause is the name of the image of every pod's sandbox.
	Pause = "pod-pacemaker.local/pause:1"
	// Herd is the name of the image of a pod that burns CPU before it is ready.
	Herd = "pod-pacemaker.local/herd:1"
)

// The programs' sources are embedded, so that a binary that uses this package needs no checkout to
// build the images.
//
//go:embed pause/main.go herd/main.go
var programs embed.FS

// Build returns the path of the tar file of an image, Pause or Herd. It builds the image if the
// cache does not hold it.
func Build(ctx context.Context, cache build.Cache, image string) (string, error) {
	ref, err := name.NewTag(image)
	if err != nil {
		return "", fmt.Errorf("image name: %w", err)
	}
	program := filepath.Base(ref.RepositoryStr())
	code, err := programs.ReadFile(program + "/main.go")
	if err != nil {
		return "", fmt.Errorf("no program for image %s: %w", image, err)
	}
	ingredients := []string{image, string(code), runtime.Version(), runtime.GOARCH}
	dir, err := cache.Entry(ctx, "image-"+program, ingredients, func(dir string) error {
		return writeImage(ctx, ref, program, code, filepath.Join(dir, "image.tar"))
	})
	return filepath.Join(dir, "image.tar"), err
}

func writeImage(ctx context.Context, ref name.Tag, program string, code []byte, path string) error {
	binary, err := compile(ctx, program, code)
	if err != nil {
		return err
	}
	return write(ref, map[string][]byte{program: binary}, Content{Entrypoint: []string{"/" + program}}, path)
}

// Content is what an image holds and runs.
type Content struct {
	// Programs maps paths in the image to the files to read.
	Programs map[string]string
	// Links maps paths in the image to what they link to.
	Links map[string]string
	// Folders are paths of empty folders in which everybody may write.
	Folders []string
	// Entrypoint and Cmd are the command that the image runs, and its arguments.
	Entrypoint, Cmd []string
}

// FromFiles writes an image of that name to the tar file path.
func FromFiles(image string, content Content, path string) error {
	ref, err := name.NewTag(image)
	if err != nil {
		return fmt.Errorf("image name: %w", err)
	}
	files := map[string][]byte{}
	for place, file := range content.Programs {
		text, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("program of image %s: %w", image, err)
		}
		files[strings.TrimPrefix(place, "/")] = text
	}
	return write(ref, files, content, path)
}

func write(ref name.Tag, files map[string][]byte, content Content, path string) error {
	image, err := assemble(files, content)
	if err != nil {
		return fmt.Errorf("assembling the image: %w", err)
	}
	return tarball.WriteToFile(path, ref, image)
}

// assemble returns an image of one layer with these programs, and the links and folders of the content.
func assemble(programs map[string][]byte, content Content) (v1.Image, error) {
	var files bytes.Buffer
	w := tar.NewWriter(&files)
	put := func(header tar.Header, text []byte) error {
		header.Size = int64(len(text))
		if err := w.WriteHeader(&header); err != nil {
			return err
		}
		_, err := w.Write(text)
		return err
	}
	for _, folder := range content.Folders {
		if err := put(tar.Header{Name: strings.Trim(folder, "/") + "/", Mode: 0o1777, Typeflag: tar.TypeDir}, nil); err != nil {
			return nil, err
		}
	}
	for _, place := range slices.Sorted(maps.Keys(programs)) {
		if err := put(tar.Header{Name: place, Mode: 0o755, Typeflag: tar.TypeReg}, programs[place]); err != nil {
			return nil, err
		}
	}
	for _, place := range slices.Sorted(maps.Keys(content.Links)) {
		if err := put(tar.Header{Name: strings.TrimPrefix(place, "/"), Linkname: content.Links[place], Typeflag: tar.TypeSymlink}, nil); err != nil {
			return nil, err
		}
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(files.Bytes())), nil
	})
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, err
	}
	config, err := image.ConfigFile()
	if err != nil {
		return nil, err
	}
	config = config.DeepCopy()
	config.OS, config.Architecture = "linux", runtime.GOARCH
	config.Config = v1.Config{Entrypoint: content.Entrypoint, Cmd: content.Cmd}
	return mutate.ConfigFile(image, config)
}

// compile builds the program, static, in its own module.
func compile(ctx context.Context, program string, code []byte) (binary []byte, err error) {
	dir, err := os.MkdirTemp("", "pod-pacemaker-image-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	files := map[string][]byte{"main.go": code, "go.mod": []byte("module " + program + "\n\ngo 1.25\n")}
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), content, fs.FileMode(0o644)); err != nil {
			return nil, err
		}
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w", "-o", "program", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOOS=linux", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("compiling %s: %w\n%s", program, err, out)
	}
	return os.ReadFile(filepath.Join(dir, "program"))
}
