package runtimetest

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"path"
	"strings"
)

// newID makes an identifier as containerd's: 64 hex digits.
func newID() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	return hex.EncodeToString(b[:])
}

// NewUID returns a random pod UID in the form the API server gives them.
func NewUID() string {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails, by its documentation
	b[6] = b[6]&0x0f | 0x40
	b[8] = b[8]&0x3f | 0x80
	return fmt.Sprintf("%x-%x-%x-%x-%x", b[0:4], b[4:6], b[6:8], b[8:10], b[10:])
}

// cgroupsPath is the OCI cgroups path containerd gives to id below parent: a path,
// or for a systemd slice "slice:prefix:name".
func cgroupsPath(parent, id string) string {
	if base := path.Base(parent); strings.HasSuffix(base, ".slice") {
		return base + ":cri-containerd:" + id
	}
	return path.Join(parent, id)
}
