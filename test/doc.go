// Package test holds tests of the whole system: real processes, real sockets, real model runtimes.
package test
