package digits

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Ladder is trained models, cheapest first, and what is known of them: the content of a folder with ladder.json and a
// file of weights for each network.
type Ladder struct {
	Seed     uint64    `json:"seed"` // of the training
	HeldOut  HeldOut   `json:"heldout"`
	Networks []Network `json:"networks"`
	Variants []Variant `json:"variants"`
}

// HeldOut are the pictures that accuracies were measured on: Set(Seed, N), or as many scenes. No training uses them.
// Brief is the number of the first ones on which a test measures them again.
type HeldOut struct {
	Seed  uint64 `json:"seed"`
	N     int    `json:"n"`
	Brief int    `json:"brief"`
}

// Variant is one model.
type Variant struct {
	Name     string   `json:"name"`
	Stage    string   `json:"stage,omitempty"` // of the graph that reads scenes
	Networks []string `json:"networks"`        // whose mean it is
	Views    int      `json:"views,omitempty"` // of each picture, over which that is taken
	// Bias is the least logarithm of the odds at which a place counts as a digit's, of a detector.
	Bias float64 `json:"bias,omitempty"`
	// Accuracy and Brief are the shares of pictures that it reads rightly, of all that are held out and of the first.
	Accuracy float64 `json:"accuracy"`
	Brief    float64 `json:"brief"`
}

// Stages of the graph that reads scenes.
const (
	Detect = "detect"
	Read   = "read"
)

const ladderFile = "ladder.json"

// The folders of the two ladders.
const (
	Pictures    = "pictures" // classifiers of pictures with one digit
	SceneModels = "scenes"   // detectors and readers of scenes
)

// trained is what `sluice demo --train --dir internal/models/digits/trained` writes.
//
//go:embed trained
var trained embed.FS

// Files are the files of the ladders that the program carries.
func Files() fs.FS {
	f, err := fs.Sub(trained, "trained")
	if err != nil {
		panic(err) // the folder's name is a valid path
	}
	return f
}

// Trained returns a ladder that the program carries: Pictures or SceneModels.
func Trained(folder string) (*Ladder, error) {
	f, err := fs.Sub(Files(), folder)
	if err != nil {
		return nil, err
	}
	return Load(f)
}

// Load reads a ladder and holds its files against their digests.
func Load(folder fs.FS) (*Ladder, error) {
	data, err := fs.ReadFile(folder, ladderFile)
	if err != nil {
		return nil, fmt.Errorf("read trained models: %w", err)
	}
	var l Ladder
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		return nil, fmt.Errorf("read trained models: %s: %w", ladderFile, err)
	}
	for i := range l.Networks {
		if err := l.Networks[i].load(folder); err != nil {
			return nil, fmt.Errorf("read trained models: %s: %w", l.Networks[i].file(), err)
		}
	}
	return &l, nil
}

// file is the name of the file of the weights.
func (n *Network) file() string { return n.Name + ".bin" }

// load reads the weights.
func (n *Network) load(folder fs.FS) error {
	data, err := fs.ReadFile(folder, n.file())
	if err != nil {
		return err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != n.SHA256 {
		return fmt.Errorf("SHA-256 is %x, want %s", sum, n.SHA256)
	}
	return n.decode(data)
}

// Save writes the ladder into a folder, for Load.
func (l *Ladder) Save(dir string) error {
	data, err := json.MarshalIndent(l, "", "  ")
	if err == nil {
		err = os.MkdirAll(dir, 0o755)
	}
	for i := 0; err == nil && i < len(l.Networks); i++ {
		n := &l.Networks[i]
		err = os.WriteFile(filepath.Join(dir, n.file()), n.data, 0o644)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, ladderFile), append(data, '\n'), 0o644)
	}
	if err != nil {
		return fmt.Errorf("write trained models: %w", err)
	}
	return nil
}

// Model returns the path of a variant's model in a model repository.
func Model(repository, variant string) string {
	return filepath.Join(repository, variant, "1", "model.onnx")
}

// Write writes every variant's model into a model repository. Those that are there are replaced.
func (l *Ladder) Write(repository string) error {
	for i := range l.Variants {
		g, err := l.graph(&l.Variants[i])
		if err == nil {
			err = g.Write(Model(repository, l.Variants[i].Name))
		}
		if err != nil {
			return fmt.Errorf("variant %q: %w", l.Variants[i].Name, err)
		}
	}
	return nil
}
