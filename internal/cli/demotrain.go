package cli

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/sluice-serving/sluice/examples/training"
	"github.com/sluice-serving/sluice/internal/models/digits"
)

// trainDemo trains the models of the demonstrations again, and compares them with those that the program carries.
func trainDemo(s *demoScreen, dir string) error {
	l, err := digits.Trained(digits.Pictures)
	if err != nil {
		return err
	}
	if dir == "" {
		dir = filepath.Join("out", "training")
	}
	s.say("training the demonstration's models into %s, which takes minutes\n", dir)
	if err := training.Run(s.Context, dir, l.Seed, s.bar.show); err != nil {
		return err
	}
	differ, err := differing(dir)
	if err != nil {
		return err
	}
	if s.asJSON {
		return writeJSON(s.Stdout, map[string]any{"folder": dir, "differ": differ})
	}
	if len(differ) == 0 {
		s.say("they are those that the program carries, byte for byte\n")
		return nil
	}
	s.say("they differ from those that the program carries: %q\n"+
		"The bytes are the same on x86 processors with AVX2 and FMA; others round differently.\n", differ)
	return nil
}

// differing lists the files of the trained models in a folder that are not as the program carries them.
func differing(dir string) (differ []string, err error) {
	ours := digits.Files()
	return differ, fs.WalkDir(ours, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		want, err := fs.ReadFile(ours, path)
		if err != nil {
			return err
		}
		got, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path)))
		if err != nil || !bytes.Equal(got, want) {
			differ = append(differ, path)
		}
		return nil
	})
}
