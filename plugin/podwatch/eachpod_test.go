package podwatch

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// A list for new facts is answered from the API server's memory, streamed or, by an older server, at once.
func TestFactsAreTakenFromTheServersMemory(t *testing.T) {
	t.Parallel()
	for _, plain := range []bool{false, true} {
		api := newAPIServer(t)
		api.plainLists = plain
		api.set(webPod())
		asked := make(chan url.Values, 100)
		front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked <- r.URL.Query()
			api.ServeHTTP(w, r)
		}))
		t.Cleanup(front.Close)
		client, err := kubernetes.NewForConfig(&rest.Config{Host: front.URL})
		require.NoError(t, err)
		w, _, _, stop := run(t, client)
		t.Cleanup(stop)
		eventually(t, "healthy", w.Healthy)
		for len(asked) > 0 {
			<-asked
		}
		w.TakeFacts(valueOf("one"), time.Millisecond)
		eventually(t, "facts", func() bool {
			pod, _ := w.Get("uid-1")
			return pod.Facts != nil
		})
		lists := 0
		for len(asked) > 0 {
			q := <-asked
			if q.Get("watch") == "" || q.Get("sendInitialEvents") == "true" {
				require.Equal(t, "0", q.Get("resourceVersion"), "%v", q)
				lists++
			}
		}
		require.Positive(t, lists)
	}
}
