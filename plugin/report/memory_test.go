package report

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/pod-pacemaker/pod-pacemaker/crd"
	"github.com/pod-pacemaker/pod-pacemaker/crd/v1alpha1"
)

// fieldsOf returns the managed fields of a part of an object, as the API server writes them.
func fieldsOf(part any) map[string]any {
	fields := map[string]any{}
	switch part := part.(type) {
	case map[string]any:
		for name, value := range part {
			fields["f:"+name] = fieldsOf(value)
		}
	case []any:
		for _, value := range part {
			item, _ := value.(map[string]any)
			key, _ := json.Marshal(map[string]any{"group": item["group"]}) //nolint:errchkjson // a string
			fields["k:"+string(key)] = fieldsOf(value)
		}
	}
	return fields
}

// fullNode returns the JSON of a PacemakerNode as the API server has it, with this many groups. NODE in it stands for what
// differs between nodes.
func fullNode(t *testing.T, groups int) string {
	t.Helper()
	p := v1alpha1.NodePolicy{Name: "t1", Generation: 3, GroupCount: int32(groups)}
	use := v1alpha1.PodUse{Pods: 1, Requests: map[string]v1alpha1.UsedQuantity{"cpu": "250m"}}
	for g := range groups {
		p.Groups = append(p.Groups, v1alpha1.PolicyGroup{
			Group: fmt.Sprintf("team-NODE/application-%d", g), Waiting: 1, Throttled: []string{"starting.pods"},
			Used: v1alpha1.PolicyUse{Starting: use, Running: use, Ready: 1},
		})
	}
	u := nodeObject(t, tells("node-NODE.example.internal", p))
	data, err := json.Marshal(fieldsOf(map[string]any{"status": u.Object["status"]}))
	require.NoError(t, err)
	at := metav1.Now()
	u.SetManagedFields([]metav1.ManagedFieldsEntry{{
		Manager: "pod-pacemaker", Operation: "Update", APIVersion: "pod-pacemaker.io/v1alpha1", Subresource: "status", Time: &at,
		FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(string(data)),
	}})
	u.SetUID("uid-NODE")
	data, err = u.MarshalJSON()
	require.NoError(t, err)
	return string(data)
}

// largeCluster is an API server with PacemakerNodes. It makes each when it is asked for.
type largeCluster struct {
	nodes int
	node  string
}

func heapInUse() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// ServeHTTP implements http.Handler.
func (c largeCluster) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if !strings.HasSuffix(r.URL.Path, "/pacemakernodes") {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	first, _ := strconv.Atoi(r.URL.Query().Get("continue"))
	limit, _ := strconv.Atoi(r.URL.Query().Get("limit"))
	next, end := "", c.nodes
	if limit > 0 && first+limit < c.nodes {
		end = first + limit
		next = strconv.Itoa(end)
	}
	fmt.Fprintf(w, `{"apiVersion":"pod-pacemaker.io/v1alpha1","kind":"PacemakerNodeList","metadata":{"resourceVersion":"5","continue":%q},"items":[`, next)
	for i := first; i < end; i++ {
		if i > first {
			_, _ = io.WriteString(w, ",")
		}
		_, _ = io.WriteString(w, strings.ReplaceAll(c.node, "NODE", fmt.Sprintf("%05d", i)))
	}
	_, _ = io.WriteString(w, "]}")
}

// A daemon may use 256 MiB. The PacemakerNodes of 5,000 nodes with 64 groups each are 150 MB of JSON, and several times
// that once decoded. The sum keeps a few pages of them at a time, and the largest number of groups: what it uses does not
// grow with the number of nodes. No test runs beside this one, because it would use memory, too.
func TestTheSumOfALargeClusterNeedsLittleMemory(t *testing.T) { //nolint:paralleltest // it measures the memory of the process
	const nodes, groups, most = 500, 64, 54 << 20
	c := largeCluster{nodes: nodes, node: fullNode(t, groups)}
	server := httptest.NewServer(c)
	t.Cleanup(server.Close)
	client, err := dynamic.NewForConfig(&rest.Config{Host: server.URL, QPS: -1})
	require.NoError(t, err)
	r := New(Options{API: client})
	sum := newTally(Summed{func() []crd.KnownPolicy { return []crd.KnownPolicy{knownPolicy(t, t1)} }, noConfigs})
	before, used := heapInUse(), uint64(0)
	require.NoError(t, r.eachReport(t.Context(), metav1.Now(), func(n v1alpha1.PacemakerNodeStatus) {
		if sum.nodes%20 == 0 {
			used = max(used, heapInUse()-before)
		}
		sum.add(n)
	}))
	assert.Equal(t, nodes, sum.nodes)
	assert.EqualValues(t, nodes*groups, sum.policies[0].status(time.Now(), v1alpha1.StartPolicyStatus{}).Used.Running.Pods)
	assert.Less(t, used, uint64(most), "bytes")
	t.Logf("%d bytes for each node, %d KiB in use at most", len(c.node), used>>10)
}
