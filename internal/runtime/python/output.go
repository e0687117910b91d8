package python

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// logLines hands on what comes line by line: printable, at most maxLine bytes of each, and at most linesPerSecond.
func logLines(from io.Reader, line func(string)) {
	r := bufio.NewReaderSize(from, maxLine)
	second, n, left := time.Now(), 0, 0
	for cut := false; ; {
		text, err := r.ReadSlice('\n')
		if len(text) > 0 && !cut {
			if time.Since(second) >= time.Second {
				if left > 0 {
					line(fmt.Sprintf("(%d lines left out: more than %d in a second)", left, linesPerSecond))
				}
				second, n, left = time.Now(), 0, 0
			}
			if n++; n <= linesPerSecond {
				line(printable(text))
			} else {
				left++
			}
		}
		cut = errors.Is(err, bufio.ErrBufferFull) // the rest of this line is left out
		if err != nil && !cut {
			return
		}
	}
}

// printable returns a line without control characters.
func printable(line []byte) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\t' || r == 0x7f {
			return -1
		}
		return r
	}, strings.ToValidUTF8(strings.TrimRight(string(line), "\r\n"), "?"))
}
