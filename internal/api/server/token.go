package server

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Bounds of a token in its file.
const (
	minToken = 16
	maxToken = 4096
)

// Token reads the token in a file. Without a file it makes one with a new token that only its owner can read.
func Token(path string) (string, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newToken(path)
	}
	if err != nil {
		return "", fmt.Errorf("admin token: %w", err)
	}
	defer f.Close()
	if st, err := f.Stat(); err == nil && st.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("admin token: %s can be read by others than its owner (mode %#o): chmod 600 it, and "+
			"replace the token if it was read", path, st.Mode().Perm())
	}
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("admin token: %w", err)
	}
	token := strings.TrimSpace(strings.TrimPrefix(string(b), "\ufeff"))
	if len(token) < minToken || len(b) > maxToken {
		return "", fmt.Errorf("admin token: %s holds no token of %d to %d bytes: remove it, and a new one is made",
			path, minToken, maxToken)
	}
	return token, nil
}

func newToken(path string) (string, error) {
	token := rand.Text()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", fmt.Errorf("admin token: %w", err)
	}
	// Written to a temporary file and renamed, so that a killed process leaves no partial one.
	f, err := os.CreateTemp(filepath.Dir(path), ".token-*") // mode 0600
	if err != nil {
		return "", fmt.Errorf("admin token: %w", err)
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.WriteString(token + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return "", fmt.Errorf("admin token: %w", err)
	}
	return token, nil
}
