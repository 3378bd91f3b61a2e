package crd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/pod-pacemaker/pod-pacemaker/crd/startpolicy"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// files returns the names and contents of testdata/dir/*.yaml.
func files(tb testing.TB, dir string) map[string]string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", dir, "*.yaml"))
	require.NoError(tb, err)
	require.NotEmpty(tb, paths, "no files in testdata/%s", dir)
	contents := map[string]string{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		require.NoError(tb, err)
		contents[filepath.Base(path)] = string(data)
	}
	return contents
}

// comment returns the text of the n-th line, which must be a comment.
func comment(tb testing.TB, content string, n int) string {
	tb.Helper()
	text, isComment := strings.CutPrefix(strings.Split(content, "\n")[n], "# ")
	require.True(tb, isComment, "line %d is no comment", n+1)
	return text
}

// Every file of testdata/invalid and testdata/startpolicy/invalid has one faulty field. Its first line is the path of the
// field, which the API server must name, too. Its second line is the error of Parse.
func TestParseNamesTheFieldAndWhatWasExpected(t *testing.T) {
	t.Parallel()
	for dir, kind := range map[string]string{"invalid": v1alpha1.Kind, "startpolicy/invalid": v1alpha1.PolicyKind} {
		for name, content := range files(t, dir) {
			t.Run(dir+"/"+name, func(t *testing.T) {
				t.Parallel()
				path, text := comment(t, content, 0), comment(t, content, 1)

				found, err := Parse([]byte(content))
				require.ErrorIs(t, err, ErrInvalid)
				assert.Empty(t, found)
				assert.Equal(t, "invalid "+kind+": "+text, err.Error())

				var fault *field.Error
				require.ErrorAs(t, err, &fault)
				assert.Equal(t, path, fault.Field)
			})
		}
	}
}

// The first line of every file of testdata/unreadable is the error of Parse.
func TestParseRefusesOtherFiles(t *testing.T) {
	t.Parallel()
	for name, content := range files(t, "unreadable") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			found, err := Parse([]byte(content))
			require.ErrorIs(t, err, ErrInvalid)
			assert.Empty(t, found)
			assert.Equal(t, "invalid PacemakerConfig: "+comment(t, content, 0), err.Error())
		})
	}
}

func TestParseAcceptsEveryValidFile(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"valid", "startpolicy/valid"} {
		for name, content := range files(t, dir) {
			t.Run(dir+"/"+name, func(t *testing.T) {
				t.Parallel()
				found, err := Parse([]byte(content))
				require.NoError(t, err)
				names := []string{}
				if found.Config != nil {
					names = append(names, found.Config.Name)
				}
				for _, policy := range found.Policies {
					names = append(names, policy.Name)
					requireUsable(t, policy)
				}
				assert.Equal(t, []string{strings.TrimSuffix(name, ".yaml")}, names)
				assert.Equal(t, dir == "valid", found.Config != nil)
			})
		}
	}
}

func TestParseReadsEveryField(t *testing.T) {
	t.Parallel()
	found, err := Load("testdata/valid/everything.yaml")
	require.NoError(t, err)

	spec := found.Config.Spec
	assert.Equal(t, map[string]v1alpha1.LabelValue{"node.kubernetes.io/instance-type": "m5.large", "pool": "2"}, spec.NodeSelector)
	assert.EqualValues(t, 10, spec.Priority)
	assert.Equal(t, v1alpha1.ModeEnforce, spec.GetMode())
	assert.Equal(t, "blue", spec.Instance)
	assert.False(t, spec.PacesRestarts())
	assert.Equal(t, 90*time.Second, spec.GetStartTimeout())
	assert.Equal(t, 15*time.Minute, spec.GetMaxWait())
	assert.Equal(t, 2*time.Second, spec.GetSettleTime())
	assert.Equal(t, v1alpha1.Exemptions{
		Namespaces: []string{"kube-system", "monitoring"}, AllowSkipAnnotation: true,
		DaemonSets:   v1alpha1.ExemptIn{Namespaces: []string{"*"}},
		CriticalPods: v1alpha1.ExemptIn{Namespaces: []string{"kube-system", "openshift-*", "*-system", "rook-ceph"}},
	}, spec.Exemptions)
}

func TestParseTellsAnEmptyNamespaceListFromAnAbsentOne(t *testing.T) {
	t.Parallel()
	data := files(t, "valid")

	empty, err := Parse([]byte(data["lowest.yaml"]))
	require.NoError(t, err)
	assert.False(t, empty.Config.Spec.Exemptions.ExemptsNamespace("kube-system"))

	absent, err := Parse([]byte(data["nulls.yaml"]))
	require.NoError(t, err)
	assert.True(t, absent.Config.Spec.Exemptions.ExemptsNamespace("kube-system"))
}

func TestParseRefusesTooMuch(t *testing.T) {
	t.Parallel()
	_, err := Parse([]byte(strings.Repeat("#", maxBytes+1)))
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, "larger than 16777216 bytes")
}

func TestLoadNamesTheFile(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing.yaml")
	_, err := Load(missing)
	require.ErrorIs(t, err, fs.ErrNotExist)
	require.NotErrorIs(t, err, ErrInvalid)
	require.ErrorContains(t, err, missing)

	const bad = "testdata/invalid/value-zero.yaml"
	_, err = Load(bad)
	require.ErrorIs(t, err, ErrInvalid)
	assert.ErrorContains(t, err, bad)
}

// requireUsable checks that a policy that was accepted can be evaluated.
func requireUsable(t *testing.T, policy *v1alpha1.StartPolicy) {
	t.Helper()
	selectors := []*v1alpha1.LabelSelector{policy.Spec.BypassSelector}
	for _, term := range policy.Spec.Selector.Terms {
		selectors = append(selectors, term.PodSelector, term.NamespaceSelector)
	}
	for _, s := range selectors {
		_, valid := s.Selector().Requirements()
		require.True(t, valid, "a selector that is not valid selects nothing: %v", s)
	}
	if policy.Spec.GroupBy != "" {
		require.NotEmpty(t, startpolicy.PathOf(policy.Spec.GroupBy))
	}
	for _, o := range policy.Spec.TemporaryOverrides {
		for _, moment := range []*v1alpha1.Moment{o.Begin, o.End} {
			if moment != nil {
				require.False(t, moment.Time().IsZero())
			}
		}
	}
}

// Parse survives any input, and what it accepts is usable.
func FuzzParse(f *testing.F) {
	for _, dir := range []string{"invalid", "unreadable", "valid", "startpolicy/invalid", "startpolicy/valid"} {
		for _, content := range files(f, dir) {
			f.Add([]byte(content))
		}
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		found, err := Parse(data)
		if err != nil {
			if found.Config != nil || len(found.Policies) > 0 || !errors.Is(err, ErrInvalid) {
				t.Fatalf("found %v with error %v", found, err)
			}
			return
		}
		for _, policy := range found.Policies {
			requireUsable(t, policy)
		}
		config := found.Config
		if config == nil {
			return
		}
		if config.Spec.GetSettleTime() >= config.Spec.GetStartTimeout() || config.Spec.GetMaxWait() <= 0 {
			t.Fatal("times do not fit")
		}
	})
}
