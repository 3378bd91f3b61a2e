package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestImagesHoldOneStaticProgram(t *testing.T) {
	t.Parallel()
	cache := build.Cache{Dir: t.TempDir()}
	for image, program := range map[string]string{Pause: "pause", Herd: "herd"} {
		path, err := Build(t.Context(), cache, image)
		require.NoError(t, err)
		again, err := Build(t.Context(), cache, image)
		require.NoError(t, err)
		require.Equal(t, path, again)

		tag, err := name.NewTag(image)
		require.NoError(t, err)
		got, err := tarball.ImageFromPath(path, &tag)
		require.NoError(t, err)
		config, err := got.ConfigFile()
		require.NoError(t, err)
		require.Equal(t, []string{"/" + program}, config.Config.Entrypoint)
		require.Equal(t, "linux", config.OS)

		content := mutate.Extract(got)
		files := tar.NewReader(content)
		header, err := files.Next()
		require.NoError(t, err)
		require.Equal(t, program, header.Name)
		require.EqualValues(t, 0o755, header.Mode)
		binary, err := io.ReadAll(files)
		require.NoError(t, err)
		require.Equal(t, "\x7fELF", string(binary[:4]))
		_, err = files.Next()
		require.ErrorIs(t, err, io.EOF)
		require.NoError(t, content.Close())
	}
}

func TestUnknownImage(t *testing.T) {
	t.Parallel()
	_, err := Build(t.Context(), build.Cache{Dir: t.TempDir()}, "example.com/other:1")
	require.ErrorContains(t, err, "no program for image")
}

func TestAnImageHoldsItsFoldersProgramsAndLinks(t *testing.T) {
	t.Parallel()
	program, path := filepath.Join(t.TempDir(), "program"), filepath.Join(t.TempDir(), "image.tar")
	require.NoError(t, os.WriteFile(program, []byte("text"), 0o600))
	require.NoError(t, FromFiles("example.com/box:1", Content{
		Programs: map[string]string{"/bin/box": program}, Links: map[string]string{"/bin/sh": "box"}, Folders: []string{"/tmp"}, Cmd: []string{"sh"},
	}, path))
	got, err := tarball.ImageFromPath(path, nil)
	require.NoError(t, err)
	config, err := got.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, []string{"sh"}, config.Config.Cmd)
	content := mutate.Extract(got)
	defer content.Close()
	var found []string
	for files := tar.NewReader(content); ; {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		found = append(found, fmt.Sprintf("%s %o %s", header.Name, header.Mode, header.Linkname))
	}
	require.Equal(t, []string{"tmp 1777 ", "bin/box 755 ", "bin/sh 0 box"}, found)
}
