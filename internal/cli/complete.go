package cli

import (
	"flag"
	"fmt"
	"io"
	"slices"
	"strings"
)

// completeWord is the hidden command that the scripts for shells call with the words up to the cursor.
const completeWord = "__complete"

// candidate is a word that may stand at the cursor.
type candidate struct{ word, about string }

// complete prints what may stand in place of the last word, a line each, with a tab and what it is. It prints nothing
// where a file is wanted: shells know about files.
func complete(e *Env, words []string) int {
	if len(words) == 0 {
		words = []string{""}
	}
	if e.Args = words; words[len(words)-1] == "=" { // bash makes a word of the sign
		words[len(words)-1] = ""
	}
	words = slices.DeleteFunc(words, func(w string) bool { return w == "=" })
	last := len(words) - 1
	for _, c := range candidates(e, commands(), words[:last], words[last]) {
		if strings.HasPrefix(c.word, words[last]) {
			fmt.Fprintf(e.Stdout, "%s\t%s\n", c.word, c.about)
		}
	}
	return ExitOK
}

// candidates are the words that may follow others. word is what stands there so far.
func candidates(e *Env, among []command, before []string, word string) (out []candidate) {
	if len(before) > 0 && before[0] == "help" {
		before = before[1:]
	}
	if len(before) == 0 {
		for _, c := range among {
			out = append(out, candidate{c.word(), c.summary})
		}
		return out
	}
	at := slices.IndexFunc(among, func(c command) bool { return c.word() == before[0] })
	if at < 0 {
		return nil
	}
	if c := &among[at]; c.verbs == nil {
		return c.candidates(e, before[1:], word)
	}
	return candidates(e, among[at].verbs, before[1:], word)
}

// word is the last word of a command's name: its own, behind that of the command it is a verb of.
func (c *command) word() string { return c.name[strings.LastIndexByte(c.name, ' ')+1:] }

// candidates are the flags of a command, the values of the flag before the word, or arguments.
func (c *command) candidates(e *Env, before []string, word string) (out []candidate) {
	fs := flag.NewFlagSet(c.name, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	c.prepare(fs)
	open, arguments := split(fs, before)
	if open != nil {
		kind, _ := flag.UnquoteUsage(open)
		return values(e, fs, kind)
	}
	if strings.HasPrefix(word, "-") {
		for _, o := range options(fs) {
			out = append(out, candidate{o.name, o.about})
		}
		return append(out, candidate{"--help", "say what the command does"})
	}
	for _, form := range c.forms(fs) {
		n := len(arguments)
		if n >= len(form) || !slices.EqualFunc(arguments, form[:n], func(word, want string) bool {
			return !isVerb(want) || word == want
		}) {
			continue
		}
		if next := form[n]; isVerb(next) {
			out = append(out, candidate{next, "of sluice " + c.name})
		} else {
			out = append(out, values(e, fs, next)...)
		}
	}
	return out
}

// split reads the words behind a command. open is the flag whose value the next word is; nil for none.
func split(fs *flag.FlagSet, words []string) (open *flag.Flag, arguments []string) {
	for _, w := range words {
		if open != nil {
			_ = fs.Set(open.Name, w) // a wrong value is the command's to refuse
			open = nil
			continue
		}
		f := flagOf(fs, w)
		if name, value, ok := strings.Cut(w, "="); ok && f == nil {
			if f = flagOf(fs, name); f != nil {
				_ = fs.Set(f.Name, value)
				continue
			}
		}
		switch {
		case f == nil && !strings.HasPrefix(w, "-"):
			arguments = append(arguments, w)
		case f != nil && !isSwitch(f):
			open = f
		}
	}
	return open, arguments
}

// flagOf returns the flag of a word such as --out; nil for another word.
func flagOf(fs *flag.FlagSet, word string) *flag.Flag {
	if !strings.HasPrefix(word, "-") {
		return nil
	}
	return fs.Lookup(strings.TrimPrefix(strings.TrimPrefix(word, "-"), "-"))
}

// isSwitch reports whether a flag stands alone.
func isSwitch(f *flag.Flag) bool {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	return ok && b.IsBoolFlag()
}

// forms are the arguments that a command takes, without its flags, one list for each alternative of its usage.
func (c *command) forms(fs *flag.FlagSet) (out [][]string) {
	for form := range strings.SplitSeq(c.usage, " | ") {
		_, words := split(fs, strings.Fields(strings.NewReplacer("[", "", "]", "", "...", "", "< ", "").Replace(form)))
		out = append(out, words)
	}
	return out
}

// isVerb reports whether a word of a usage is written as it is, and stands for no other.
func isVerb(word string) bool {
	return !strings.ContainsFunc(word, func(r rune) bool { return (r < 'a' || r > 'z') && r != '-' })
}
