// Package pb holds the messages and the service of the Open Inference Protocol over gRPC, generated from
// open_inference.proto.
package pb

//go:generate protoc -I ../../../.. --go_out=../../../.. --go_opt=paths=source_relative --go-grpc_out=../../../.. --go-grpc_opt=paths=source_relative internal/api/oip/pb/open_inference.proto
