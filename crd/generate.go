package crd

// The deepcopy functions and the custom resource definition are generated from
// the types and their markers: `go generate ./crd` writes them.

//go:generate go run ./internal/generate -root ..
