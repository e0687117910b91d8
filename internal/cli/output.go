package cli

import (
	"encoding/json"
	"io"
	"os"
	"path/filepath"

	"github.com/sluice-serving/sluice/internal/host/files"
	"github.com/sluice-serving/sluice/internal/measure/plot"
	"github.com/sluice-serving/sluice/serving/report"
)

func writeJSON(w io.Writer, v any) error {
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

// writeLine writes a value as JSON on one line.
func writeLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

// saveReports writes reports and their plots into a folder and returns the names of the files.
func saveReports(dir, title string, names []string, reports []*report.Report) ([]string, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	var written []string
	save := func(name string, write func(io.Writer) error) error {
		path := filepath.Join(dir, name)
		written = append(written, path)
		return files.Write(path, write)
	}
	for i, r := range reports {
		if err := save(names[i]+".json", r.JSON); err != nil {
			return nil, err
		}
	}
	fig, err := plot.New(title, names, reports)
	if err != nil {
		return nil, err
	}
	if err := save("run.png", fig.PNG); err != nil {
		return nil, err
	}
	return written, save("run.svg", fig.SVG)
}

// drawn writes a chart into a folder as PNG and SVG, and returns the names of the files.
func drawn(dir, name string, c *plot.Chart) ([]string, error) {
	names := []string{filepath.Join(dir, name+".png"), filepath.Join(dir, name+".svg")}
	if err := files.Write(names[0], c.PNG); err != nil {
		return nil, err
	}
	return names, files.Write(names[1], c.SVG)
}
