package herdpage

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httputil"
	"net/url"
)

// Handler serves below /key/. It answers pods.json with the result of rows, as JSON, and passes every other request
// on to the daemon. key must be a secret: other users of the machine can reach the address, but may not be
// allowed to list pods. The page shows the rows if its address ends in "?pods".
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
		// An error means that the browser is gone.
		_ = json.NewEncoder(w).Encode(found)
	})
	return mux
}
