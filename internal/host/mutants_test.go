package host

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/sluice-serving/sluice/internal/models/onnxmodel"
)

// mutants is how many variations of each configuration are tried; SLUICE_MUTANTS sets another number.
const mutants = 80

// Configurations with random mistakes are either opened or refused with file and line in every line of the text.
func TestEveryMistakeHasALine(t *testing.T) {
	n := mutants
	if s := os.Getenv("SLUICE_MUTANTS"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	dir := t.TempDir()
	for _, name := range []string{"ranking", "digits", "classify", "detect", "m"} {
		if err := onnxmodel.Identity(onnxmodel.Float32, onnxmodel.Symbolic, 4).Write(
			filepath.Join(dir, "models", name, "1", "model.onnx")); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(dir, "store"), 0o700); err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, pattern := range []string{
		"../../examples/*.yaml", "../../examples/*/sluice.yaml", "../config/testdata/bad/*.yaml",
		"../config/template.yaml",
	} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, err)
		}
		files = append(files, found...)
	}
	rng := rand.New(rand.NewPCG(1, 17))
	tried, refused := 0, 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for k := range n {
			mutant := string(text)
			for range min(k, 1+rng.IntN(3)) {
				mutant = mistaken(rng, mutant)
			}
			path := filepath.Join(dir, "sluice.yaml")
			if err := os.WriteFile(path, []byte(mutant), 0o600); err != nil {
				t.Fatal(err)
			}
			tried++
			if _, err := Open(path, Options{}); err != nil {
				refused++
				if text := err.Error(); !located(text, path) {
					t.Errorf("%s, mutant %d: %s\n%s", file, k, text, mutant)
				}
			}
		}
	}
	t.Logf("%d mutants, %d refused", tried, refused)
	if refused < tried/10 || tried-refused < tried/20 {
		t.Errorf("of %d mutants %d were refused: they prove nothing", tried, refused)
	}
}

var more = regexp.MustCompile(`^and \d+ more$`)

// located reports whether every line of an error begins with the file and a line.
func located(text, path string) bool {
	head := regexp.MustCompile("^" + regexp.QuoteMeta(path) + `:[1-9]\d*: `)
	for _, line := range strings.Split(text, "\n") {
		if !head.MatchString(line) && !more.MatchString(line) {
			return false
		}
	}
	return true
}

var (
	word   = regexp.MustCompile(`[A-Za-z_][\w.+-]*`)
	number = regexp.MustCompile(`-?\d+(\.\d+)?`)
)

// mistaken makes one mistake in a text.
func mistaken(rng *rand.Rand, text string) string {
	lines := strings.Split(text, "\n")
	at := rng.IntN(len(lines))
	pick := func(of ...string) string { return of[rng.IntN(len(of))] }
	replace := func(what *regexp.Regexp, by func() string) string {
		found := what.FindAllStringIndex(text, -1)
		if len(found) == 0 {
			return text
		}
		f := found[rng.IntN(len(found))]
		return text[:f[0]] + by() + text[f[1]:]
	}
	words := word.FindAllString(text, -1)
	switch rng.IntN(12) {
	case 0: // a line is gone
		lines = append(lines[:at:at], lines[at+1:]...)
	case 1: // a line twice
		lines = append(lines[:at+1:at+1], lines[at:]...)
	case 2: // another indentation
		lines[at] = pick(" ", "  ", "\t", "      ") + lines[at]
	case 3:
		lines[at] = strings.TrimLeft(lines[at], " ")
	case 4: // the end is missing
		return text[:rng.IntN(len(text)+1)]
	case 5: // a byte too many, too few or wrong
		if text == "" {
			return text
		}
		i := rng.IntN(len(text))
		odd := pick("", string(rune(rng.IntN(256))), ":", "{", "]", "\x00", "\"", "&", "*", "#", "\n", "- ", "%")
		return text[:i] + odd + text[i+rng.IntN(2):]
	case 6:
		return replace(number, func() string {
			return pick("-1", "0", "1e309", "NaN", ".inf", "99999999999999999999", "0x10", "1_0", "", "null", "1.5",
				"100000", "[]", "{}", strconv.Itoa(rng.IntN(1000)))
		})
	case 7: // one word for another
		return replace(word, func() string {
			if len(words) == 0 {
				return "x"
			}
			return words[rng.IntN(len(words))]
		})
	case 8: // a word that nobody knows
		return replace(word, func() string {
			return pick("true", "null", "~", "!!int", "!x", "*a", "&a", "<<", "0.5", "nobody", "é", "''", "[a, b]",
				"{a: 1}", fmt.Sprintf("w%d", rng.IntN(9)))
		})
	case 9: // a typing mistake
		return replace(word, func() string {
			w := []byte("word")
			if len(words) > 0 {
				w = []byte(words[rng.IntN(len(words))])
			}
			w[rng.IntN(len(w))] = byte('a' + rng.IntN(26))
			return string(w)
		})
	case 10: // a value is gone
		if i := strings.Index(lines[at], ":"); i >= 0 {
			lines[at] = lines[at][:i+1]
		}
	case 11: // two lines swapped
		other := rng.IntN(len(lines))
		lines[at], lines[other] = lines[other], lines[at]
	}
	return strings.Join(lines, "\n")
}
