package herdpage

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Handler answers below /key/: at pods.json what rows gives, and with the daemon's own
// answers else. The key is a secret, because everybody on the machine can reach the
// address, and not everybody there may list pods. The page shows the rows where its
// address ends in "?pods".
func Handler(daemon *url.URL, key string, rows func(context.Context) ([]Row, error)) http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /"+key+"/", http.StripPrefix("/"+key, &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(daemon) },
	}))
	mux.HandleFunc("GET /"+key+"/pods.json", func(w http.ResponseWriter, r *http.Request) {
		found, err := rows(r.Context())
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Cache-Control", "no-store")
		// The browser may be gone, which concerns nobody else.
		_ = json.NewEncoder(w).Encode(found)
	})
	return mux
}
