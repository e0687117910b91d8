// Package oip translates between the Open Inference Protocol v2 and tensors, in both directions and for both sides of a
// connection: gRPC messages here, JSON with binary tensors in the rest files. It opens no connection and decides
// nothing.
package oip
