package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/host/measuring"
	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// configuredFrom makes a sluice.yaml of a model file or a model repository and returns its path. It lies in a folder of
// the user's cache, which belongs to these models as they are, so that a later start finds its measurements there.
// objectives are those of the apps; nil where they are not known yet.
func configuredFrom(e *Env, path string, objectives map[string]time.Duration, models *config.Models) (
	string, error) {
	if config.IsPython(path) {
		return configuredPython(e, path, objectives)
	}
	st, err := os.Stat(path)
	if err != nil {
		return "", fault.Wrap(fault.Usage, err)
	}
	folder, err := folderOf(e, path)
	if err != nil {
		return "", err
	}
	repository, err := filepath.Abs(path)
	if err == nil && !st.IsDir() {
		if !st.Mode().IsRegular() {
			return "", fault.Errorf(fault.Usage, "%s is neither a file nor a folder", path)
		}
		if _, err := onnxmodel.Read(path); err != nil {
			return "", fault.Errorf(fault.Config, "%w: serve takes ONNX models, models in Python, and folders with "+
				"NAME/1/model.onnx", err)
		}
		repository = filepath.Join(folder, "models")
		err = putModel(path, repository)
	}
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, "sluice.yaml")
	text, notes, err := config.ImportTriton(repository, file, config.Importing{
		Objectives: objectives, Here: true, Models: *models,
	})
	if err != nil {
		return "", fault.Wrap(fault.Config, err)
	}
	if objectives == nil {
		for _, n := range notes {
			fmt.Fprintln(e.Stderr, n)
		}
	}
	return file, os.WriteFile(file, text, 0o600)
}

// temporary has the folders that this process uses in place of those of a user's cache that it cannot write.
var temporary sync.Map

// folderOf returns the folder that belongs to the models at a path. It changes when one of their files does. Where the
// user's cache cannot be written, it is a temporary one.
func folderOf(e *Env, path string) (string, error) {
	abs, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	h := sha256.New()
	fmt.Fprintln(h, abs)
	err = filepath.WalkDir(abs, func(at string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err == nil {
			fmt.Fprintln(h, at, st.Size(), st.ModTime().UnixNano())
		}
		return err
	})
	if err != nil {
		return "", err
	}
	folder := filepath.Join(userCache("serve"), hex.EncodeToString(h.Sum(nil))[:16])
	if err = os.MkdirAll(folder, 0o700); err == nil {
		err = files.Writable(folder)
	}
	if err == nil {
		return folder, nil
	}
	if known, ok := temporary.Load(folder); ok {
		return known.(string), nil
	}
	made, failed := os.MkdirTemp("", "sluice-")
	if failed != nil {
		return "", errors.Join(err, failed)
	}
	temporary.Store(folder, made)
	fmt.Fprintf(e.Stderr, "the configuration and the profile of these models are not kept for the next start: %v\n",
		err)
	return made, nil
}

// putModel makes a repository with one model of a file, under the file's name, together with the files of its weights:
// those whose names begin with the file's.
func putModel(file, repository string) error {
	base := filepath.Base(file)
	name := strings.TrimSuffix(base, filepath.Ext(base))
	if name == "model" { // as most tools name their output
		if abs, err := filepath.Abs(file); err == nil {
			name = filepath.Base(filepath.Dir(abs))
		}
	}
	dir := filepath.Join(repository, name, "1")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	beside, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		return err
	}
	for _, x := range beside {
		to := x.Name()
		if !strings.HasPrefix(to, base) || x.IsDir() {
			continue
		}
		if to == base {
			to = "model.onnx"
		}
		if err := linkOrCopy(filepath.Join(filepath.Dir(file), x.Name()), filepath.Join(dir, to)); err != nil {
			return err
		}
	}
	return nil
}

func linkOrCopy(from, to string) error {
	if err := os.Link(from, to); err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// openPath opens the configuration that a model file or a repository amounts to, and its profile. The objectives follow
// from a look at the models, or with first from their measurements, where an earlier start has left none.
func openPath(e *Env, path, system string, models *config.Models, first bool) (*host.Profiled, error) {
	open := func(objectives map[string]time.Duration) (*host.Opened, error) {
		file, err := configuredFrom(e, path, objectives, models)
		if err != nil {
			return nil, err
		}
		return openQuick(e, file, system, first)
	}
	opened, err := open(nil)
	if err != nil {
		return nil, err
	}
	profiled, err := measuring.EnsureProfile(e.Context, opened)
	if err != nil {
		return nil, err
	}
	if opened, err = open(profiled.Objectives()); err != nil {
		return nil, err
	}
	return measuring.Again(e.Context, opened, profiled)
}
