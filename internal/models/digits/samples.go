package digits

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// samples is the content of samples.json. Files hold the samples one after the other, little-endian, without gaps.
type samples struct {
	Inputs      []sampleInput `json:"inputs"`
	LabelOutput string        `json:"label_output,omitempty"`
	Labels      *sampleLabels `json:"labels,omitempty"`
	Count       int           `json:"count"`
}

// sampleInput is one input of the model; Shape is that of one sample, without the batch dimension.
type sampleInput struct {
	Name     string  `json:"name"`
	DataType string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
	File     string  `json:"file"`
}

type sampleLabels struct {
	DataType string `json:"datatype"`
	File     string `json:"file"`
}

// WriteSamples writes n labelled pictures into the folder path, for a load generator: inputs.bin (UINT8), labels.bin
// (INT64, the correct output "label") and samples.json, which describes them. Existing files are overwritten.
// samples.json is written last, so that all files are complete if it is.
func WriteSamples(path string, seed uint64, n int) error {
	if n < 1 || n > 1<<20 {
		return fmt.Errorf("write samples %s: %d samples: give 1 to %d", path, n, 1<<20)
	}
	images, labels := Set(seed, n)
	out := make([]byte, 0, 8*n)
	for _, v := range labels {
		out = binary.LittleEndian.AppendUint64(out, uint64(v))
	}
	return writeSamples(path, n, images, out)
}

// WriteScenes writes scenes for a load generator as WriteSamples does, but without labels, because a scene has several
// digits.
func WriteScenes(path string, scenes []Scene) error {
	var images []byte
	for i := range scenes {
		images = append(images, scenes[i].Picture...)
	}
	return writeSamples(path, len(scenes), images, nil)
}

func writeSamples(path string, n int, images, labels []byte) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("write samples: %w", err)
	}
	s := samples{
		Inputs: []sampleInput{
			{Name: "image", DataType: "UINT8", Shape: []int64{1, Size, Size}, File: "inputs.bin"},
		}, Count: n,
	}
	type file struct {
		name string
		data []byte
	}
	files := []file{{"inputs.bin", images}}
	if labels != nil {
		s.LabelOutput, s.Labels = "label", &sampleLabels{DataType: "INT64", File: "labels.bin"}
		files = append(files, file{"labels.bin", labels})
	}
	meta, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return fmt.Errorf("write samples: %w", err)
	}
	if err := os.Remove(filepath.Join(path, "samples.json")); err != nil && !os.IsNotExist(err) {
		return fmt.Errorf("write samples: %w", err)
	}
	for _, f := range append(files, file{"samples.json", append(meta, '\n')}) {
		if err := os.WriteFile(filepath.Join(path, f.name), f.data, 0o644); err != nil {
			return fmt.Errorf("write samples: %w", err)
		}
	}
	return nil
}
