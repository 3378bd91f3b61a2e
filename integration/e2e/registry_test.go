//go:build e2e && full

package e2e

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/stretchr/testify/require"

	"github.com/pod-pacemaker/pod-pacemaker/integration/build"
	"github.com/pod-pacemaker/pod-pacemaker/integration/lab"
)

// The address of the node's slow registry. It serves images herd-0, herd-1 and so on, and each
// takes at least layerTakes to pull.
const (
	registryAddress = "127.0.0.1:5000"
	registryImages  = 12
	layerTakes      = 3 * time.Second
	// registryOf is an environment variable with the file of the herd image. It makes the test
	// binary run as the registry.
	registryOf = "E2E_REGISTRY_OF"
)

func init() {
	if file := os.Getenv(registryOf); file != "" {
		panic(serveRegistry(file)) // serves until it is killed
	}
}

// startRegistry runs the registry on the node until the test ends.
func startRegistry(t *testing.T) {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	cache, err := lab.CacheDir()
	require.NoError(t, err)
	binaries, err := lab.Build(t.Context(), cache, build.PlainProgress(os.Stderr))
	require.NoError(t, err)
	service, err := node.StartService(t.Context(), lab.ServiceSpec{
		Name: "registry", Args: []string{self}, Env: []string{registryOf + "=" + binaries.HerdImage},
	})
	require.NoError(t, err)
	eventually(t, "the registry serves", func() bool { return strings.Contains(service.Tail(5), "serving") })
}

// slow delays layers, and logs how many images are being pulled, and each request for a manifest.
type slow struct {
	inner http.Handler

	mu      sync.Mutex
	pulling map[string]int // open requests for layers, by image
}

func (s *slow) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	image, _, blob := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/blobs/")
	if blob && r.Method == http.MethodGet {
		s.change(image, 1)
		defer s.change(image, -1)
		time.Sleep(layerTakes)
	}
	if image, _, manifest := strings.Cut(strings.TrimPrefix(r.URL.Path, "/v2/"), "/manifests/"); manifest {
		fmt.Println("manifest", image)
	}
	s.inner.ServeHTTP(w, r)
}

func (s *slow) change(image string, by int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pulling[image] += by; s.pulling[image] == 0 {
		delete(s.pulling, image)
	}
	fmt.Println("pulling", len(s.pulling), image)
}

func serveRegistry(file string) error {
	herd, err := tarball.ImageFromPath(file, nil)
	if err != nil {
		return err
	}
	inner := registry.New()
	filling := httptest.NewServer(inner)
	defer filling.Close()
	for i := range registryImages {
		ref, err := name.ParseReference(fmt.Sprintf("%s/herd-%d:1", strings.TrimPrefix(filling.URL, "http://"), i))
		if err != nil {
			return err
		}
		if err := push(ref, herd); err != nil {
			return err
		}
	}
	listener, err := net.Listen("tcp", registryAddress)
	if err != nil {
		return err
	}
	fmt.Println("serving")
	server := http.Server{Handler: &slow{inner: inner, pulling: map[string]int{}}, ReadHeaderTimeout: time.Minute}
	return server.Serve(listener)
}

// push creates an image from the herd's layers and a layer of its own.
func push(ref name.Reference, herd v1.Image) error {
	own, err := random.Layer(1<<16, "application/vnd.docker.image.rootfs.diff.tar.gzip")
	if err != nil {
		return err
	}
	image, err := mutate.AppendLayers(herd, own)
	return errors.Join(err, remote.Write(ref, image))
}

// mostPulling returns the highest number of these images that were pulled at a time.
func mostPulling(t *testing.T, log string, images []string) (most int) {
	t.Helper()
	pulling := map[string]bool{}
	for line := range strings.Lines(log) {
		var n int
		var image string
		if _, err := fmt.Sscanf(line, "pulling %d %s", &n, &image); err != nil || !slices.Contains(images, image) {
			continue
		}
		pulling[image] = true
		most = max(most, n)
	}
	require.Len(t, pulling, len(images), "images that were pulled")
	return most
}
