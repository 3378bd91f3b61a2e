package admin

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
)

// page is one file. It loads no other, and requests status.json, and pods.json if its address ends in "?pods".
//
//go:embed page.html
var page string

// pagePolicy lets the browser run only the page's own script and style, and send requests only to this daemon, even
// if text that the page shows is hostile.
var pagePolicy = fmt.Sprintf(
	"default-src 'none'; connect-src 'self'; script-src %s; style-src %s; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
	hashOf("script"), hashOf("style"))

// hashOf returns the hash of the page's only element of that name, in the form of a Content-Security-Policy.
func hashOf(element string) string {
	_, rest, _ := strings.Cut(page, "<"+element+">")
	content, _, _ := strings.Cut(rest, "</"+element+">")
	sum := sha256.Sum256([]byte(content))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func servePage(w http.ResponseWriter, _ *http.Request) {
	h := w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Security-Policy", pagePolicy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cache-Control", "no-cache")
	// An error means that the peer is gone.
	_, _ = w.Write([]byte(page))
}
