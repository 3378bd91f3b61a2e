// Package page tests the page that the daemon serves in a real browser: `make page`, with a
// Chromium on the PATH. It needs no root.
package page
