package oip

import (
	"encoding/json"
	"strconv"
)

// Depths of a message: itself, its lists and parameters, a tensor, and the shape and the parameters of a tensor.
const (
	messageDepth = 1 + iota
	listDepth
	tensorDepth
	shapeDepth
	countedDepths
)

// headScanner counts the entries of a message's JSON before anything is made of it.
type headScanner struct {
	bounds *Bounds
	object [countedDepths]bool // the container that is open at a depth is an object, else a list
	commas [countedDepths]int  // in it
	depth  int
}

func (s *headScanner) open(c byte) error {
	if s.depth++; s.depth > maxDepth {
		return invalid("", "is nested more than %d deep", maxDepth)
	}
	if s.depth < countedDepths {
		s.object[s.depth], s.commas[s.depth] = c == '{', 0
	}
	return nil
}

// comma counts an entry. Names of fields play no part, since JSON has several ways to write a name.
func (s *headScanner) comma() error {
	if s.depth >= countedDepths {
		return nil
	}
	s.commas[s.depth]++
	entries := s.commas[s.depth] + 1
	switch object := s.object[s.depth]; {
	case s.depth == listDepth && !object && entries > s.bounds.Tensors:
		return s.bounds.errTensors()
	case (s.depth == listDepth || s.depth == shapeDepth) && object && entries > s.bounds.Parameters:
		return s.bounds.errParameters()
	case s.depth == shapeDepth && !object && entries > MaxRank:
		return errRank()
	}
	return nil
}

// cutData replaces the value of every "data" key of a tensor (an object three levels down: message, list, tensor) by
// its index in the returned list, so that encoding/json never sees tensor data. It returns an error for a message
// that holds more than the bounds allow; what it returns else has at most bounds.Head bytes.
func cutData(head []byte, bounds *Bounds) (lean []byte, data []json.RawMessage, err error) {
	lean = make([]byte, 0, min(len(head), 4096))
	s := headScanner{bounds: bounds}
	copied := 0
	key := false // the next string at this depth is a key
	for at := 0; at < len(head); {
		if len(lean)+at-copied > bounds.Head {
			return nil, nil, bounds.errHead()
		}
		switch c := head[at]; c {
		case '{', '[':
			if err := s.open(c); err != nil {
				return nil, nil, err
			}
			key = c == '{'
			at++
		case '}', ']':
			if s.depth--; s.depth < 0 {
				return nil, nil, invalid("", "the request is not the JSON that is wanted: a bracket closes nothing")
			}
			key = false
			at++
		case ',':
			if err := s.comma(); err != nil {
				return nil, nil, err
			}
			key = s.depth == tensorDepth || key // only keys of tensors matter
			at++
		case '"':
			end, err := skipString(head, at)
			if err != nil {
				return nil, nil, err
			}
			isData := key && s.depth == tensorDepth && string(head[at:end]) == `"data"`
			key = false
			at = end
			if !isData {
				continue
			}
			at = skipSpace(head, at)
			if at >= len(head) || head[at] != ':' {
				continue
			}
			at = skipSpace(head, at+1)
			from := at
			if at, err = skipValue(head, at); err != nil {
				return nil, nil, err
			}
			lean = append(lean, head[copied:from]...)
			lean = strconv.AppendInt(lean, int64(len(data)), 10)
			copied = at
			data = append(data, head[from:at])
			if len(data) > 2*bounds.Tensors {
				return nil, nil, bounds.errTensors()
			}
		default:
			at++
		}
	}
	if len(lean)+len(head)-copied > bounds.Head {
		return nil, nil, bounds.errHead()
	}
	return append(lean, head[copied:]...), data, nil
}
