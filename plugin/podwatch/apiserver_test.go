package podwatch

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// apiServer serves pods over HTTP like the real one, but only lists and watches with a node's field selector.
type apiServer struct {
	t    testing.TB
	addr string
	// plainLists: like an older server, it cannot send the initial list as a stream.
	plainLists bool

	mu      sync.Mutex
	http    *http.Server
	rv      int
	oldest  int // watches from earlier versions get the error that their version has expired
	pods    map[string]*corev1.Pod
	log     []event
	changed chan struct{} // closed at the next change
}

type event struct {
	rv     int
	fields fields.Set
	line   []byte
}

// fieldsOf returns what field selectors can ask of a pod.
func fieldsOf(p *corev1.Pod) fields.Set {
	return fields.Set{"spec.nodeName": p.Spec.NodeName, "status.phase": string(p.Status.Phase)}
}

// newAPIServer returns a server that listens until the test ends.
func newAPIServer(t testing.TB) *apiServer {
	// The address belongs to this process alone, so no other process takes the port while the server is stopped.
	own := net.IPv4(127, 83, byte(os.Getpid()>>8), byte(os.Getpid()))
	s := &apiServer{t: t, addr: net.JoinHostPort(own.String(), "0"), pods: map[string]*corev1.Pod{}, changed: make(chan struct{}), rv: 1}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *apiServer) start() {
	listener, err := net.Listen("tcp", s.addr)
	require.NoError(s.t, err)
	server := &http.Server{Handler: s}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.addr, s.http = listener.Addr().String(), server
	go func() { _ = server.Serve(listener) }() // always ends with ErrServerClosed
}

// stop cuts all connections and refuses new ones.
func (s *apiServer) stop() {
	s.mu.Lock()
	server := s.http
	s.mu.Unlock()
	require.NoError(s.t, server.Close())
}

func (s *apiServer) client() kubernetes.Interface {
	client, err := kubernetes.NewForConfig(&rest.Config{Host: "http://" + s.addr})
	require.NoError(s.t, err)
	return client
}

// set creates or updates a pod.
func (s *apiServer) set(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	kind, key := "ADDED", p.Namespace+"/"+p.Name
	if old, ok := s.pods[key]; ok {
		require.Equal(s.t, old.UID, p.UID, "the API server has one pod of each name at a time")
		kind = "MODIFIED"
	}
	s.pods[key] = s.recordLocked(kind, p)
}

func (s *apiServer) remove(p *corev1.Pod) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pods, p.Namespace+"/"+p.Name)
	s.recordLocked("DELETED", p)
}

// compact forgets all changes until now. A client that missed them must list again.
func (s *apiServer) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log, s.oldest = nil, s.rv
}

func (s *apiServer) recordLocked(kind string, p *corev1.Pod) *corev1.Pod {
	s.rv++
	p = p.DeepCopy()
	p.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"}
	p.ResourceVersion = strconv.Itoa(s.rv)
	s.log = append(s.log, event{s.rv, fieldsOf(p), s.line(kind, p)})
	close(s.changed)
	s.changed = make(chan struct{})
	return p
}

func (s *apiServer) line(kind string, object any) []byte {
	line, err := json.Marshal(map[string]any{"type": kind, "object": object})
	require.NoError(s.t, err)
	return append(line, '\n')
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	only, err := fields.ParseSelector(r.FormValue("fieldSelector"))
	w.Header().Set("Content-Type", "application/json")
	initial := r.FormValue("sendInitialEvents") == "true"
	switch {
	case r.URL.Path != "/api/v1/pods" || err != nil || only.Empty():
		http.NotFound(w, r)
	case r.FormValue("watch") == "":
		s.list(w, only)
	case initial && s.plainLists:
		answer := apierrors.NewInvalid(schema.GroupKind{Group: "meta.k8s.io", Kind: "ListOptions"}, "", nil).Status()
		w.WriteHeader(int(answer.Code))
		_ = json.NewEncoder(w).Encode(answer)
	default:
		s.watch(w, r, only, initial)
	}
}

func (s *apiServer) list(w http.ResponseWriter, only fields.Selector) {
	s.mu.Lock()
	list := corev1.PodList{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "PodList"}}
	list.ResourceVersion = strconv.Itoa(s.rv)
	for _, p := range s.pods {
		if only.Matches(fieldsOf(p)) {
			list.Items = append(list.Items, *p)
		}
	}
	s.mu.Unlock()
	_ = json.NewEncoder(w).Encode(list) // a client that disconnects is no fault of the server
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, only fields.Selector, initial bool) {
	from, _ := strconv.Atoi(r.FormValue("resourceVersion")) // empty: from the beginning
	if initial {
		from = s.initialEvents(w, only)
	} else if s.expired(from) {
		gone := apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d", from)).Status()
		_, _ = w.Write(s.line("ERROR", gone))
		return
	}
	for {
		s.mu.Lock()
		changed := s.changed
		for _, e := range s.log {
			if e.rv > from && only.Matches(e.fields) {
				_, _ = w.Write(e.line)
			}
		}
		from = s.rv
		s.mu.Unlock()
		if http.NewResponseController(w).Flush() != nil {
			return // the connection was cut
		}
		select {
		case <-changed:
		case <-r.Context().Done():
			return
		}
	}
}

// initialEvents sends every pod and the bookmark that ends the initial list, and returns the version of that list.
func (s *apiServer) initialEvents(w http.ResponseWriter, only fields.Selector) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.pods {
		if only.Matches(fieldsOf(p)) {
			_, _ = w.Write(s.line("ADDED", p))
		}
	}
	_, _ = w.Write(s.line("BOOKMARK", &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			ResourceVersion: strconv.Itoa(s.rv), Annotations: map[string]string{metav1.InitialEventsAnnotationKey: "true"},
		},
	}))
	return s.rv
}

func (s *apiServer) expired(from int) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return from < s.oldest
}
