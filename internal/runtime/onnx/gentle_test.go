//go:build cgo

package onnx

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// A load waits for a moment without batches, but not for ever, and not beyond its context.
func TestLoadsGiveWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &activity{}
		if a.serves() {
			t.Error("nothing has run, and loads give way")
		}
		begun := time.Now()
		if err := a.giveWay(t.Context()); err != nil || time.Since(begun) > 0 {
			t.Errorf("waits %v for nothing: %v", time.Since(begun), err)
		}
		a.begin()
		go func() {
			time.Sleep(5 * time.Millisecond)
			a.end()
		}()
		if err := a.giveWay(t.Context()); err != nil || a.running.Load() > 0 {
			t.Errorf("does not wait for the batch: %v", err)
		}
		if !a.serves() {
			t.Error("a batch has just ended, and loads do not give way")
		}
		a.begin()
		begun = time.Now()
		if err := a.giveWay(t.Context()); err != nil || time.Since(begun) < longestGiving {
			t.Errorf("gives up after %v: %v", time.Since(begun), err)
		}
		ended, end := context.WithCancel(t.Context())
		end()
		if a.giveWay(ended) == nil {
			t.Error("waits though its context has ended")
		}
		a.end()
		time.Sleep(2 * quiet)
		if a.serves() {
			t.Error("loads give way long after the last batch")
		}
	})
}
