package server

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/prototext"

	"github.com/sluice-serving/sluice/internal/api/oip"
	"github.com/sluice-serving/sluice/internal/models/repository"
	triton "github.com/sluice-serving/sluice/internal/models/repository/pb"
)

// Loading is what a client sends with a model to load, in place of what the repository has; empty for nothing.
type Loading struct {
	Config []byte            // the model's configuration as JSON; nil for that of the repository
	Files  map[string][]byte // contents by VERSION/NAME; empty for the files of the repository
	// Settings are the parameters of ours, as text, by their names without SettingPrefix.
	Settings map[string]string
}

func (l *Loading) add(file string, data []byte) {
	if l.Files == nil {
		l.Files = make(map[string][]byte)
	}
	l.Files[file] = data
}

// ModelConfig reads the configuration that a client has sent for a model; nil for none.
func (l *Loading) ModelConfig(name string) (*triton.ModelConfig, error) {
	if l.Config == nil {
		if len(l.Files) > 0 {
			return nil, oip.Errorf(oip.Invalid, "parameters.config",
				"is missing: files that are sent need the configuration of their model")
		}
		return nil, nil
	}
	if len(l.Config) > repository.MaxConfigBytes {
		return nil, oip.Errorf(oip.TooLarge, "parameters.config", "has %d bytes, more than %d", len(l.Config),
			repository.MaxConfigBytes)
	}
	given := &triton.ModelConfig{}
	if err := (protojson.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(l.Config, given); err != nil {
		return nil, oip.Errorf(oip.Invalid, "parameters.config", "is no model configuration as JSON: %v", err)
	}
	if given.Name == "" {
		given.Name = name
	}
	return given, nil
}

// Put writes what a client has sent as a repository of that model alone. dir must not exist; it does not after an
// error.
func (l *Loading) Put(dir, name string, given *triton.ModelConfig) error {
	err := l.put(filepath.Join(dir, name), given)
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return nil
}

func (l *Loading) put(folder string, given *triton.ModelConfig) error {
	text, err := prototext.Marshal(given)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(folder, "config.pbtxt"), text, 0o600); err != nil {
		return err
	}
	for path, data := range l.Files {
		version, file, ok := strings.Cut(path, "/")
		if n, bad := strconv.ParseInt(version, 10, 64); !ok || bad != nil || n < 1 || file == "" ||
			!filepath.IsLocal(file) || strings.ContainsAny(file, "/\\\x00") {
			return oip.Errorf(oip.Internal, fmt.Sprintf("parameters.file:%.100s", path),
				"want file:VERSION/NAME, such as file:1/model.onnx")
		}
		if err := os.MkdirAll(filepath.Join(folder, version), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(folder, version, file), data, 0o600); err != nil {
			return err
		}
	}
	return nil
}
