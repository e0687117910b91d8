package repository

import (
	"path"
	"strings"
)

// maxLabelBytes bounds a label file.
const maxLabelBytes = 16 << 20

// readLabels reads the label files of the outputs: a label on each line, in the order of the classes. A file that
// cannot be read is a warning: classes are numbers then.
func (r *Repository) readLabels(m *Model) {
	for _, out := range m.Config.Output {
		if out.LabelFilename == "" {
			continue
		}
		text, err := r.ReadFile(path.Join(m.Name, path.Clean("/"+out.LabelFilename)), maxLabelBytes)
		if err != nil {
			m.warnf("output %q: label_filename: %v", out.Name, err)
			continue
		}
		var labels []string
		for line := range strings.Lines(string(withoutMark(text))) {
			labels = append(labels, strings.TrimRight(line, "\r\n"))
		}
		if m.Labels == nil {
			m.Labels = make(map[string][]string)
		}
		m.Labels[out.Name] = labels
	}
}
