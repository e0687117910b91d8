package cli

import (
	"bufio"
	"io"
	"strings"
	"unicode/utf8"
)

// columns writes rows as a table with aligned columns. The first row is the head. form has a letter for each column: l
// and r for text to the left and to the right. A column in which every row but the head is empty is left out.
func columns(w io.Writer, form string, rows [][]string) error {
	width := make([]int, len(form))
	used := make([]bool, len(form))
	for n, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], utf8.RuneCountInString(cell))
			used[i] = used[i] || n > 0 && cell != ""
		}
	}
	b := bufio.NewWriter(w)
	for _, row := range rows {
		line := ""
		for i, cell := range row {
			if !used[i] {
				continue
			}
			pad := strings.Repeat(" ", width[i]-utf8.RuneCountInString(cell))
			if form[i] == 'r' {
				cell = pad + cell
			} else {
				cell += pad
			}
			if line != "" {
				line += "  "
			}
			line += cell
		}
		b.WriteString(strings.TrimRight(line, " "))
		b.WriteByte('\n')
	}
	return b.Flush()
}
