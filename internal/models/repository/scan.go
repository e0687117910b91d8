package repository

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
)

const (
	maxNesting = 64  // messages within messages
	maxUnknown = 100 // unknown fields reported one by one
)

// scanner walks protobuf text format far enough to tell field names from values. prototext can either refuse the first
// unknown field or skip all of them silently. The scanner finds all of them with their lines. It does not check values;
// prototext does.
type scanner struct {
	text    string
	at      int
	line    int
	unknown []string
	more    int
}

// unknownFields lists the fields that desc does not have, as "path (line n)".
func unknownFields(text string, desc protoreflect.MessageDescriptor) ([]string, error) {
	s := &scanner{text: text, line: 1}
	if err := s.message(desc, "", 0, 0); err != nil {
		return nil, err
	}
	if s.more > 0 {
		s.unknown = append(s.unknown, fmt.Sprintf("and %d more", s.more))
	}
	return s.unknown, nil
}

func (s *scanner) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: %s", s.line, fmt.Sprintf(format, args...))
}

// message reads fields until closer, or the end of the text when closer is 0. desc is nil inside an unknown field.
func (s *scanner) message(desc protoreflect.MessageDescriptor, path string, closer byte, depth int) error {
	if depth > maxNesting {
		return s.errorf("messages are nested more than %d deep", maxNesting)
	}
	for {
		s.space()
		if s.at == len(s.text) {
			if closer != 0 {
				return s.errorf("%q is missing at the end of the file", closer)
			}
			return nil
		}
		switch c := s.text[s.at]; c {
		case closer:
			s.at++
			return nil
		case ',', ';':
			s.at++
			continue
		}
		line := s.line
		name, err := s.name()
		if err != nil {
			return err
		}
		full := name
		if path != "" {
			full = path + "." + name
		}
		var inner protoreflect.MessageDescriptor
		if desc != nil {
			fd := desc.Fields().ByTextName(name)
			switch {
			case fd == nil:
				s.report(full, line)
			case carried[fd.FullName()]:
				s.report(full, line)
			default:
				inner = fd.Message()
			}
		}
		s.space()
		if s.peek() == ':' {
			s.at++
			s.space()
		}
		if err := s.value(inner, full, depth); err != nil {
			return err
		}
	}
}

func (s *scanner) report(path string, line int) {
	if len(s.unknown) == maxUnknown {
		s.more++
		return
	}
	s.unknown = append(s.unknown, fmt.Sprintf("%s (line %d)", path, line))
}

// value skips one value: a message, a list, or scalars up to the first token that cannot continue one.
func (s *scanner) value(desc protoreflect.MessageDescriptor, path string, depth int) error {
	switch s.peek() {
	case '{':
		s.at++
		return s.message(desc, path, '}', depth+1)
	case '<':
		s.at++
		return s.message(desc, path, '>', depth+1)
	case '[':
		s.at++
		for {
			s.space()
			switch s.peek() {
			case ']':
				s.at++
				return nil
			case ',':
				s.at++
			case '[', 0:
				return s.errorf("the list of %s does not end", path)
			default:
				if err := s.value(desc, path, depth+1); err != nil {
					return err
				}
			}
		}
	case '"', '\'':
		for s.peek() == '"' || s.peek() == '\'' {
			if err := s.quoted(); err != nil {
				return err
			}
			s.space()
		}
		return nil
	default:
		if s.peek() == '-' {
			s.at++
			s.space()
		}
		start := s.at
		for s.at < len(s.text) && isWord(s.text[s.at]) {
			s.at++
		}
		if start == s.at {
			return s.errorf("%s has no value", path)
		}
		return nil
	}
}

func (s *scanner) quoted() error {
	quote := s.text[s.at]
	for s.at++; s.at < len(s.text); s.at++ {
		switch s.text[s.at] {
		case quote:
			s.at++
			return nil
		case '\\':
			s.at++
		case '\n':
			return s.errorf("a text does not end on its line")
		}
	}
	s.at = len(s.text)
	return s.errorf("a text does not end")
}

func (s *scanner) name() (string, error) {
	start := s.at
	if s.text[s.at] == '[' {
		end := strings.IndexAny(s.text[s.at:], "]\n")
		if end < 0 || s.text[s.at+end] == '\n' {
			return "", s.errorf("an extension name does not end")
		}
		s.at += end + 1
		return s.text[start:s.at], nil
	}
	for s.at < len(s.text) && isWord(s.text[s.at]) {
		s.at++
	}
	if start == s.at {
		return "", s.errorf("%q stands where a field name should", s.text[s.at])
	}
	return s.text[start:s.at], nil
}

func (s *scanner) peek() byte {
	if s.at < len(s.text) {
		return s.text[s.at]
	}
	return 0
}

// space skips white space and comments.
func (s *scanner) space() {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case '\n':
			s.line++
			s.at++
		case ' ', '\t', '\r', '\v', '\f':
			s.at++
		case '#':
			for s.at < len(s.text) && s.text[s.at] != '\n' {
				s.at++
			}
		default:
			return
		}
	}
}

func isWord(c byte) bool {
	return c == '_' || c == '.' || c == '+' || c == '-' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' &&
		c <= 'Z'
}
