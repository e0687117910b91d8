// Package pb has the messages of KEDA's external scaler protocol, with the names and numbers that KEDA calls by.
package pb

//go:generate protoc -I ../.. --go_out=../.. --go_opt=paths=source_relative --go-grpc_out=../.. --go-grpc_opt=paths=source_relative scaler/pb/external_scaler.proto
