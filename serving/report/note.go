package report

import (
	"fmt"
	"io"
)

// noteWriter writes lines below a table, after an empty one. names says which report a line is about; they are empty
// where there is one.
type noteWriter struct {
	w     io.Writer
	names []string
	begun bool
}

// line writes a line about report k.
func (n *noteWriter) line(k int, format string, args ...any) error {
	text := fmt.Sprintf(format, args...) + "\n"
	if n.names[k] != "" {
		text = n.names[k] + ": " + text
	}
	if !n.begun {
		n.begun, text = true, "\n"+text
	}
	_, err := io.WriteString(n.w, text)
	return err
}
