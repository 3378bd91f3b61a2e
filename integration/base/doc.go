// Package base tests what `kubectl apply -k` makes of deploy/base and of the overlays on it. It has no code of its own.
package base
