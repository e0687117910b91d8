//go:build cgo && !linux

package onnx

import "errors"

type processors struct{}

func (*processors) take(int) (*pinned, error) {
	return nil, errors.New("this system does not let programs choose processors")
}

func (*processors) give(*pinned) {}

type pinned struct{}

func (*pinned) on(f func() error) error { return f() }
