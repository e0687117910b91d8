// Package server answers clients: the Open Inference Protocol v2 over HTTP and gRPC, health, metrics and
// administration. It translates and bounds; what happens to a query is decided behind Service.
package server
