package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// fetchTimeout bounds a fetch, fetchWait the time until what it leaves behind is let go, and fetchSays what is kept of
// what it prints, in bytes.
const (
	fetchTimeout = 30 * time.Minute
	fetchWait    = 5 * time.Second
	fetchSays    = 4 << 10
)

// FetchBy returns a Config.Fetch that runs a program with the model's name as its last argument, after --to with the
// folder that models are to be put into, and --uri and --digest where the load says them.
func FetchBy(program []string) func(ctx context.Context, uri, digest, folder string) error {
	return func(ctx context.Context, uri, digest, folder string) error {
		ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
		defer cancel()
		args := append([]string{}, program[1:]...)
		args = append(args, "--to", filepath.Dir(folder))
		if uri != "" {
			args = append(args, "--uri", uri)
		}
		if digest != "" {
			args = append(args, "--digest", digest)
		}
		cmd := exec.CommandContext(ctx, program[0], append(args, filepath.Base(folder))...)
		cmd.WaitDelay = fetchWait
		var said tail
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Run(); err != nil {
			if ctx.Err() != nil {
				return ctx.Err()
			}
			if text := strings.TrimSpace(said.String()); text != "" {
				return errors.New(text)
			}
			return fmt.Errorf("%s: %w", program[0], err)
		}
		return nil
	}
}

// tail keeps the end of what is written to it.
type tail struct{ bytes.Buffer }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	n, err := t.Buffer.Write(p)
	if over := t.Len() - fetchSays; over > 0 {
		t.Next(over)
	}
	return n, err
}
