// Package server answers clients: the Open Inference Protocol v2 over HTTP and gRPC, health, metrics and
// administration. It translates and enforces bounds. Service decides about queries.
package server
