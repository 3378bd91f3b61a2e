package build

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestEveryComponentHasARecipe(t *testing.T) {
	t.Parallel()
	all, err := parseVersions(strings.NewReader(versionsText))
	require.NoError(t, err)
	require.NotEmpty(t, all)
	for _, c := range all {
		r, err := recipeOf(c)
		require.NoError(t, err)
		require.NotEmpty(t, r.programs(), c.Name)
		found, err := Find(c.Name)
		require.NoError(t, err)
		require.Equal(t, c, found)
	}
}

func TestFindUnknown(t *testing.T) {
	t.Parallel()
	_, err := Find("nonsense")
	require.ErrorContains(t, err, `"nonsense"`)
}

func TestASecondVersionHasTheSameRecipe(t *testing.T) {
	t.Parallel()
	c := Component{Name: "containerd@1.7", Module: "github.com/containerd/containerd", Version: "v1.7.35"}
	r, err := recipeOf(c)
	require.NoError(t, err)
	require.Equal(t, "-s -w -X github.com/containerd/containerd/version.Version=1.7.35", r.ldflags(c))
}

func TestKubernetesReportsItsVersion(t *testing.T) {
	t.Parallel()
	c := Component{Name: "kubernetes", Module: "k8s.io/kubernetes", Version: "v1.36.3"}
	r, err := recipeOf(c)
	require.NoError(t, err)
	flags := r.ldflags(c)
	for _, want := range []string{"version.gitVersion=v1.36.3", "version.gitMajor=1 ", "version.gitMinor=36 "} {
		require.Contains(t, flags, want)
	}
}

func TestProgramNames(t *testing.T) {
	t.Parallel()
	r := recipe{packages: []string{".", "./cmd/ctr"}, rename: map[string]string{".": "etcd"}}
	require.Equal(t, []string{"etcd", "ctr"}, r.programs())
}

func TestParseVersions(t *testing.T) {
	t.Parallel()
	all, err := parseVersions(strings.NewReader("# a comment\n\nrunc  example.com/runc  v1.2.3  h1:abc=\n"))
	require.NoError(t, err)
	require.Equal(t, []Component{{Name: "runc", Module: "example.com/runc", Version: "v1.2.3", Sum: "h1:abc="}}, all)
}

func TestParseVersionsRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, says string }{
		"too few fields": {"runc example.com/runc v1", "line 1: want name, module, version and checksum"},
		"bare version":   {"\nrunc example.com/runc 1.2 h1:x", "line 2: version"},
		"other checksum": {"runc example.com/runc v1.2.0 sha256:x", "line 1: checksum"},
		"twice":          {"a m v1 h1:x\na m v2 h1:y", "line 2: a stands twice"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parseVersions(strings.NewReader(c.text))
			require.ErrorContains(t, err, c.says)
		})
	}
}
