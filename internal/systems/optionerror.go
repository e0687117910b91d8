package systems

import (
	"fmt"
	"strings"
)

// OptionError says what is wrong with an option that was given.
type OptionError struct {
	Option string
	Key    string // below system in a configuration
	Text   string // what is wrong and what to do; continues a sentence that begins with the option
}

// Error names the option and says what is wrong with it.
func (e *OptionError) Error() string { return fmt.Sprintf("option %q %s", e.Option, e.Text) }

// OptionErrors are all errors of the options given.
type OptionErrors []*OptionError

// Error lists the errors, one on each line.
func (e OptionErrors) Error() string {
	return strings.Join(each(e, (*OptionError).Error), "\n")
}

func (e OptionErrors) orNil() error {
	if len(e) == 0 {
		return nil
	}
	return e
}

func noOption(name string) *OptionError {
	known := each(table, func(o Option) string { return o.Name })
	return &OptionError{
		Option: name, Key: "options." + name,
		Text: fmt.Sprintf("does not exist%s: 'sluice systems NAME' lists those of a system", didYouMean(name, known)),
	}
}
