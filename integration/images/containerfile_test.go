package images

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"
)

func TestTheContainerfilesImageHasItsPrograms(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	containerfile, err := os.ReadFile(filepath.Join("..", "..", "Containerfile"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(root, "Containerfile"), containerfile, 0o600))
	require.NoError(t, os.Mkdir(filepath.Join(root, "bin"), 0o755))
	programs := []string{"pacemaker-cni", "pacemaker-gate", "pod-pacemaker"}
	for _, program := range programs {
		require.NoError(t, os.WriteFile(filepath.Join(root, "bin", program), []byte(program), 0o600))
	}
	path := filepath.Join(root, "image.tar")
	require.NoError(t, FromContainerfile("example.test/pp:v1", root, path))

	tag, err := name.NewTag("example.test/pp:v1")
	require.NoError(t, err)
	image, err := tarball.ImageFromPath(path, &tag)
	require.NoError(t, err)
	config, err := image.ConfigFile()
	require.NoError(t, err)
	require.Equal(t, []string{"/usr/local/bin/pod-pacemaker"}, config.Config.Entrypoint)
	content := mutate.Extract(image)
	defer content.Close()
	var found []string
	files := tar.NewReader(content)
	for {
		header, err := files.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		found = append(found, header.Name)
	}
	require.Equal(t, []string{"usr/local/bin/pacemaker-cni", "usr/local/bin/pacemaker-gate", "usr/local/bin/pod-pacemaker"}, found)

	require.NoError(t, os.Remove(filepath.Join(root, "bin", "pacemaker-cni")))
	require.ErrorIs(t, FromContainerfile("example.test/pp:v1", root, path), os.ErrNotExist)
}
