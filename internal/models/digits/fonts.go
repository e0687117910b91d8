package digits

import (
	"codeberg.org/go-fonts/latin-modern/lmmono10italic"
	"codeberg.org/go-fonts/latin-modern/lmmono10regular"
	"codeberg.org/go-fonts/latin-modern/lmroman10italic"
	"codeberg.org/go-fonts/latin-modern/lmroman10regular"
	"codeberg.org/go-fonts/latin-modern/lmromandunh10regular"
	"codeberg.org/go-fonts/latin-modern/lmromanunsl10regular"
	"codeberg.org/go-fonts/latin-modern/lmsans10oblique"
	"codeberg.org/go-fonts/latin-modern/lmsans10regular"
	"codeberg.org/go-fonts/latin-modern/lmsansquot8bold"
	"codeberg.org/go-fonts/liberation/liberationmonobold"
	"codeberg.org/go-fonts/liberation/liberationmonoregular"
	"codeberg.org/go-fonts/liberation/liberationsansitalic"
	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-fonts/liberation/liberationserifbolditalic"
	"codeberg.org/go-fonts/liberation/liberationserifregular"
	"golang.org/x/image/font/gofont/gobold"
	"golang.org/x/image/font/gofont/goitalic"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
)

// faces are the fonts of the characters: upright and slanted, with and without serifs, light and bold.
var faces = []struct {
	name string
	data []byte
}{
	{"go regular", goregular.TTF}, {"go italic", goitalic.TTF}, {"go bold", gobold.TTF}, {"go mono", gomono.TTF},
	{"liberation sans", liberationsansregular.TTF}, {"liberation sans italic", liberationsansitalic.TTF},
	{"liberation serif", liberationserifregular.TTF}, {"liberation serif bold italic", liberationserifbolditalic.TTF},
	{"liberation mono", liberationmonoregular.TTF}, {"liberation mono bold", liberationmonobold.TTF},
	{"lm roman", lmroman10regular.TTF}, {"lm roman italic", lmroman10italic.TTF},
	{"lm roman unslanted", lmromanunsl10regular.TTF}, {"lm roman dunhill", lmromandunh10regular.TTF},
	{"lm mono", lmmono10regular.TTF}, {"lm mono italic", lmmono10italic.TTF},
	{"lm sans", lmsans10regular.TTF}, {"lm sans oblique", lmsans10oblique.TTF}, {
		"lm sans quotation bold", lmsansquot8bold.TTF,
	},
}
