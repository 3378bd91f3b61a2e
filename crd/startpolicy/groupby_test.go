package startpolicy

import (
	"fmt"
	"os"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/yaml"

	"github.com/pod-pacemaker/pod-pacemaker/crd/plain"
)

// groupOf returns in which group of a policy with this groupBy a pod is.
func groupOf(t *testing.T, groupBy string, of *corev1.Pod) string {
	t.Helper()
	spec := policy(t, "selector: {terms: [{podSelector: {}}]}\nlimits: {running: {pods: 1}}")
	spec.Spec.GroupBy = groupBy
	m, ok := matches(Compile(spec), of, nil)
	require.Equal(t, m.Group != "", ok)
	return m.Group
}

func TestGroupsAreTheValuesOfTheExpression(t *testing.T) {
	t.Parallel()
	of := pod(func(p *corev1.Pod) {
		p.Annotations = map[string]string{"a.b/c": "x", "null": ""}
		p.Spec.Containers[0].Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("200m")}
		p.Spec.Containers[0].Ports = []corev1.ContainerPort{{Name: "http", ContainerPort: 80}, {Name: "web", ContainerPort: 8080}}
		p.Spec.Containers[1].Ports = []corev1.ContainerPort{{Name: "admin", ContainerPort: 9000}}
		p.Spec.NodeSelector = map[string]string{"disk": "fast", "zone": "a"}
		p.Status.Phase = corev1.PodPending
	})
	for groupBy, want := range map[string]string{
		".spec.containers[0].image":                                     "nginx:1.14.2", // straggler's
		"{.spec.containers[0].image}":                                   "nginx:1.14.2",
		"{$.spec.containers[-1].image}":                                 "envoy:1",
		".spec.containers[*].image":                                     "nginx:1.14.2 envoy:1",
		".spec.containers[*].ports[*].name":                             "http web admin",
		".spec.containers[*].ports[1].name":                             "web",
		`.spec.containers[?(@.name=="side")].image`:                     "envoy:1",
		`.spec.containers[?(@.name != 'side')].image`:                   "nginx:1.14.2",
		`.spec.containers[?(@.absent!="x")].image`:                      "",
		`.spec.containers[?(@['resources'].requests.cpu=='200m')].name`: "app",
		".spec.containers[*].ports[?(@.containerPort==80)].name":        "http",
		`.metadata.labels.app\.kubernetes\.io/name`:                     "Web",
		`{.metadata.labels['app\.kubernetes\.io/name']}`:                "Web",
		`{.metadata.labels['app.kubernetes.io/name']}`:                  "Web",
		`.metadata.annotations.a\.b/c`:                                  "x",
		".metadata.annotations.null":                                    "",
		".metadata.creationTimestamp":                                   "",
		".spec.containers[0].resources.requests.cpu":                    "200m",
		".spec.containers[0].ports[0].containerPort":                    "80",
		".spec.nodeSelector":                                            `{"disk":"fast","zone":"a"}`,
		".metadata.labels.absent":                                       "",
		".metadata.labels[0]":                                           "",
		".spec.containers.image":                                        "",
		".spec.containers[7].image":                                     "",
		".spec.containers[-3].image":                                    "",
		".status.phase":                                                 "", // it changes
	} {
		require.True(t, validGroupBy(groupBy), groupBy)
		assert.Equal(t, want, groupOf(t, groupBy, of), groupBy)
	}
}

// What can select a part of a pod twice is no groupBy, nor is text that is more than one path, or not printable.
func TestNoOtherStepsAreValid(t *testing.T) {
	t.Parallel()
	for _, groupBy := range []string{
		"", "{}", ".", "image", "$.spec", ".spec}", "{.spec", "{.a}{", "{.a}{.b}", "{.a}-{.b}", "x{.a}", "{.a}\n", ".a.", ".a[", ".a[0", ".a[]",
		"..image", ".spec..image", "{..}", ".spec.*", ".spec[*", ".spec[0:2]", ".spec[0,1]", ".a['b','c']", ".spec[000000]",
		"{range .spec.containers[*]}{.image}{end}", `{.a}{"\n"}`, ".a[?(@.b)]", ".a[?(@.b<1)]", ".a[?(@.b[*]==1)]", ".a[?(@.b==@.c)]", ".a[?(@==1)]", `.a[?(@.b=="\"")]`,
		".ä", ".a b", ".a\x1b", ".a[?(@.b=='\n')]", ".a[?(@.b=='\u202e')]", ".a\\b", "{@.a}",
	} {
		assert.False(t, validGroupBy(groupBy), "%q", groupBy)
	}
}

// groupByPattern is the regular expression of valid groupBys. One that begins with "{" must end with "}", and only such a
// one, which it does not say.
const groupByPattern = `^(?:\{\$?)?\.(?:[-\w/]|\\[.])+(?:` + fieldStep + `|` + indexStep + `|` + filterStep + `)*\}?$`

var validGroupBys = regexp.MustCompile(groupByPattern) //nolint:gocritic // the ranges leave out quote and backslash

// validGroupBy is the rule of the definition.
func validGroupBy(text string) bool {
	return validGroupBys.MatchString(text) && strings.HasPrefix(text, "{") == strings.HasSuffix(text, "}")
}

// Package apiserver of integration tests with files that the API server applies it.
func TestTheCRDHasThePattern(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("../../deploy/crds/pod-pacemaker.io_startpolicies.yaml")
	require.NoError(t, err)
	var crd any
	require.NoError(t, yaml.Unmarshal(data, &crd))
	assert.Contains(t, fmt.Sprint(crd), `self.startsWith('{') == self.endsWith('}') && self.matches(r"""`+groupByPattern+`""")`)
}

// large is a pod of 206 KB, in 300 containers with lists of lists.
func large() *corev1.Pod {
	return pod(func(p *corev1.Pod) {
		p.Spec.Containers = make([]corev1.Container, 300)
		for i := range p.Spec.Containers {
			c := &p.Spec.Containers[i]
			c.Name, c.Image = "app", strings.Repeat("i", 100)
			for range 10 {
				c.Env = append(c.Env, corev1.EnvVar{Name: "A", Value: "bbbbbbbbbbbbbbbbbbbbbbb"})
			}
		}
	})
}

// It is not parallel, so that no other test allocates.
func TestAGroupByTakesLittleMemory(t *testing.T) { //nolint:paralleltest // as above
	object := large()
	read := func(groupBy string) uint64 {
		needs := Needs{groupBys: sets.New(groupBy)}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		FactsOf(object, needs)
		runtime.ReadMemStats(&after)
		return after.TotalAlloc - before.TotalAlloc
	}
	read(".a") // what is made once
	base := read(".metadata.name")
	for _, groupBy := range []string{
		".spec", ".spec.containers[*]", ".spec.containers[*].env[*].value", ".spec" + strings.Repeat("[*]", 84), `.spec.containers[?(@.name=="app")].env[?(@.name!="B")]`,
		".spec.containers[*].env[*]" + strings.Repeat("[*]", 76),
	} {
		require.True(t, validGroupBy(groupBy))
		require.Less(t, read(groupBy), base+5<<20, groupBy)
	}
}

func TestALongValueIsCutAndStaysDifferentFromOthers(t *testing.T) {
	t.Parallel()
	group := func(value string) string {
		group := groupOf(t, ".metadata.annotations.a", pod(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": value} }))
		assert.LessOrEqual(t, len(group), mostValue)
		return group
	}
	long := strings.Repeat("ü", 100_000)
	one := group(long + "x")
	assert.Equal(t, one, group(long+"x"))
	assert.NotEqual(t, one, group(long+"y"))
}

// A tenant may write anything into an annotation. The API server accepts any bytes from a client that does not speak JSON.
func TestAGroupIsPrintable(t *testing.T) {
	t.Parallel()
	of := func(value string) string {
		return groupOf(t, ".metadata.annotations.a", pod(func(p *corev1.Pod) { p.Annotations = map[string]string{"a": value} }))
	}
	assert.Equal(t, "a b", of("a b"))
	for _, value := range []string{"a\x1b[31m\nb", "a\u202eb", "a  b", "a\xffb", "\n"} {
		group := of(value)
		assert.Equal(t, plain.Line(group, mostValue), group, "%q", value)
		assert.Contains(t, group, "~", "different values stay different")
	}
	assert.NotEqual(t, of("a\nb"), of("a\x1bb"))
}

func TestAnExpressionIsSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	p := compile(t, "selector: {terms: [{podSelector: {}}]}\nlimits: {running: {pods: 1}}\ngroupBy: '.spec.containers[?(@.name!=\"x\")].image'")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				m, ok := matches(p, pod(), nil)
				assert.True(t, ok)
				assert.Equal(t, "nginx:1.14.2 envoy:1", m.Group)
			}
		})
	}
	wg.Wait()
}

// A groupBy is printable, and its value too, whatever the pod contains.
func FuzzGroupBy(f *testing.F) {
	for _, groupBy := range []string{
		".spec.containers[0].image", "{$.spec.containers[-1].env[*].name}", `.spec.containers[?(@.name=="app")].image`, `.metadata.annotations['a.b/c']`,
		"{.a}{.b}", "{..}{..}", "{range .spec.containers[*]}{end}", ".spec",
	} {
		f.Add(groupBy, "\x1b[31m\n\u202e\xff")
	}
	f.Fuzz(func(t *testing.T, groupBy, text string) {
		if !validGroupBy(groupBy) {
			return
		}
		if plain.Line(groupBy, len(groupBy)) != strings.Join(strings.Fields(groupBy), " ") || len(PathOf(groupBy)) == 0 {
			t.Fatalf("accepted: %q", groupBy)
		}
		of := pod(func(p *corev1.Pod) {
			p.Annotations = map[string]string{"a": text, "a.b/c": text}
			p.Spec.Containers[0].Name, p.Spec.Containers[0].Image, p.Spec.Containers[0].Args = text, text, []string{text, text}
		})
		if group := FactsOf(of, Needs{groupBys: sets.New(groupBy)}).Values[groupBy]; len(group) > mostValue || plain.Line(group, mostValue) != group {
			t.Fatalf("%q: %q", groupBy, group)
		}
	})
}
