package store

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// Chain is the record of a chain of functions. Its models are files of its own, so that it stays as it is when a
// function of it is replaced or deleted.
type Chain struct {
	Name     string           `json:"name"`
	Version  int              `json:"version"` // counts the deployments under this name, from 1
	Deployed time.Time        `json:"deployed"`
	Text     string           `json:"text"`   // the file that describes it
	Models   map[string]Model `json:"models"` // by name of the function
}

const (
	chainsFolder = "chains"
	chainFile    = "chain.json"
)

func (f *Functions) chainDir(name string) string { return filepath.Join(f.dir, chainsFolder, name) }

// ChainRepository is the folder with the models of a version of a chain, as a model repository.
func (f *Functions) ChainRepository(name string, version int) string {
	return filepath.Join(f.chainDir(name), strconv.Itoa(version))
}

// StageChain makes the repository of a chain. It is kept once PutChain has been called.
func (f *Functions) StageChain(c *Chain) error {
	dir := f.ChainRepository(c.Name, c.Version)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("store: chain %q: %w", c.Name, err)
	}
	for function, m := range c.Models {
		to := filepath.Join(dir, function, "1")
		err := os.MkdirAll(to, 0o700)
		if err == nil {
			err = os.Link(f.ModelPath(m.SHA256), filepath.Join(to, "model"+modelEnding))
		}
		if err != nil {
			return fmt.Errorf("store: chain %q: %w", c.Name, err)
		}
	}
	return nil
}

// DropChain removes the repository of a version of a chain.
func (f *Functions) DropChain(name string, version int) error {
	return os.RemoveAll(f.ChainRepository(name, version))
}

// PutChain keeps a chain whose repository was made. It takes the place of the version before, whose repository stays:
// instances may still read it.
func (f *Functions) PutChain(c *Chain) error {
	b, err := json.Marshal(c)
	if err != nil {
		return fmt.Errorf("store: chain %q: %w", c.Name, err)
	}
	dir := f.chainDir(c.Name)
	to, err := os.CreateTemp(dir, uploadPrefix+"*")
	if err != nil {
		return fmt.Errorf("store: chain %q: %w", c.Name, err)
	}
	defer func() { _ = os.Remove(to.Name()) }()
	_, err = to.Write(b)
	if err = errors.Join(err, to.Sync(), to.Close()); err == nil {
		err = os.Rename(to.Name(), filepath.Join(dir, chainFile))
	}
	if err == nil {
		err = errors.Join(syncFolder(f.ChainRepository(c.Name, c.Version)), syncFolder(dir),
			syncFolder(filepath.Dir(dir)))
	}
	if err != nil {
		return fmt.Errorf("store: chain %q: %w", c.Name, err)
	}
	return nil
}

// DeleteChain removes a chain with its files.
func (f *Functions) DeleteChain(name string) error {
	if err := os.Remove(filepath.Join(f.chainDir(name), chainFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("store: chain %q: %w", name, err)
	}
	return os.RemoveAll(f.chainDir(name))
}

// Chains returns all chains by name, and errors for those whose record cannot be read. It removes repositories of
// versions that are not kept. It is for the start of a server.
func (f *Functions) Chains() (out []Chain, damaged []error) {
	names, err := os.ReadDir(filepath.Join(f.dir, chainsFolder))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, []error{fmt.Errorf("store: %w", err)}
	}
	for _, n := range names {
		var c Chain
		b, err := os.ReadFile(filepath.Join(f.chainDir(n.Name()), chainFile))
		switch {
		case errors.Is(err, fs.ErrNotExist): // of a first deployment that was interrupted
			err = os.RemoveAll(f.chainDir(n.Name()))
		case err == nil:
			if err = json.Unmarshal(b, &c); err == nil && c.Name != n.Name() {
				err = fmt.Errorf("its record is of %q", c.Name)
			}
			if err == nil {
				out = append(out, c)
				err = f.dropOthers(&c)
			}
		}
		if err != nil {
			damaged = append(damaged, fmt.Errorf("store: chain %q: %w", n.Name(), err))
		}
	}
	return out, damaged
}

// dropOthers removes the repositories of a chain's other versions.
func (f *Functions) dropOthers(c *Chain) error {
	all, err := os.ReadDir(f.chainDir(c.Name))
	for _, x := range all {
		if x.IsDir() && x.Name() != strconv.Itoa(c.Version) {
			err = errors.Join(err, os.RemoveAll(filepath.Join(f.chainDir(c.Name), x.Name())))
		}
	}
	return err
}
