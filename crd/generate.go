package crd

// `go generate ./crd` writes the deepcopy functions and the custom resource definitions from the types and their markers.
// The chart has the definitions as well, as files: not every tool that packs a chart follows links. Package rules has their
// schemas. controller-gen is built for the release of k8s.io/* in go.mod, and needs the Go module proxy the first time.

//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen@v0.21.0 object crd paths=./v1alpha1 output:object:dir=v1alpha1 output:crd:dir=../deploy/crds
//go:generate sh -c "cp ../deploy/crds/*_*.yaml ../deploy/chart/pod-pacemaker/files/crds/"
//go:generate go test ./rules -run ^TestTheSchemasAreThoseOfTheDefinitions$ -update
