// Package pb holds the generated message types of a Triton model configuration; model_config.proto says what was taken
// over.
//
// To regenerate: install protoc, build protoc-gen-go at the version go.mod names
// (go build -o DIR google.golang.org/protobuf/cmd/protoc-gen-go), put DIR on PATH and run go generate.
package pb

//go:generate protoc -I ../../../.. --go_out=../../../.. --go_opt=paths=source_relative internal/models/repository/pb/model_config.proto
