package oip

import (
	"math"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/internal/limits"
)

// Params are the request parameters that sluice reads. It ignores others, as the protocol demands of unknown
// parameters.
type Params struct {
	Timeout     time.Duration // "timeout", in microseconds on the wire; 0 means the app's objective
	Priority    int32         // "priority": 1 the highest, 0 the default
	MinAccuracy float64       // "min_accuracy" in [0, 1]
	// Sequence is "sequence_id" of Triton's sequence extension, a name or a number in decimal digits: the stream that
	// the request belongs to; "" is none. SequenceStart and SequenceEnd are "sequence_start" and "sequence_end": the
	// first and the last request of it.
	Sequence                   string
	SequenceStart, SequenceEnd bool
	// SequenceRate is "sequence_rate", ours: the requests per second that the client will send in the sequence; 0 when
	// not declared.
	SequenceRate float64
	// StageTimings is "stage_timings": the answer reports, for every stage, when it was ready, how long it waited and
	// how long it ran.
	StageTimings bool
}

// maxSequence bounds the name of a sequence, in bytes.
const maxSequence = 256

// Set sets one parameter. v is a bool, int64, uint64, float64 or string. It ignores unknown names.
func (p *Params) Set(name string, v any) error {
	field := "parameters." + name
	switch name {
	case "timeout":
		us, ok := number(v)
		if !ok || us < 0 || us > math.MaxInt64/1e3 || us != math.Trunc(us) {
			return invalid(field, "is %v, want a whole number of microseconds, at least 0", v)
		}
		p.Timeout = time.Duration(us) * time.Microsecond
	case "priority":
		n, ok := number(v)
		if !ok || n < 0 || n > math.MaxUint64 || n != math.Trunc(n) {
			return invalid(field, "is %v, want a whole number, 1 the highest, 0 the default", v)
		}
		p.Priority = int32(min(n, math.MaxInt32)) // no model has as many levels
	case "min_accuracy":
		a, ok := number(v)
		if !ok || !(a >= 0 && a <= 1) {
			return invalid(field, "is %v, want a number in [0, 1]", v)
		}
		p.MinAccuracy = a
	case "sequence_id":
		switch x := v.(type) {
		case int64:
			p.Sequence = strconv.FormatInt(x, 10)
		case uint64:
			p.Sequence = strconv.FormatUint(x, 10)
		case string:
			p.Sequence = x
		default:
			return invalid(field, "is %v, want a whole number or a string", v)
		}
		if len(p.Sequence) > maxSequence {
			return invalid(field, "has %d bytes, at most %d are taken", len(p.Sequence), maxSequence)
		}
		if p.Sequence == "0" {
			p.Sequence = "" // "" is none in the extension
		}
	case "sequence_start":
		return setBool(&p.SequenceStart, field, v)
	case "sequence_rate":
		r, ok := number(v)
		if !ok || !(r >= 0 && r <= limits.SequenceRate) {
			return invalid(field, "is %v, want a number of requests a second, 0 to %v", v, limits.SequenceRate)
		}
		p.SequenceRate = r
	case "sequence_end":
		return setBool(&p.SequenceEnd, field, v)
	case "stage_timings":
		return setBool(&p.StageTimings, field, v)
	}
	return nil
}

// check returns an error when the parameters contradict each other.
func (p *Params) check() error {
	if (p.SequenceStart || p.SequenceEnd || p.SequenceRate > 0) && p.Sequence == "" {
		return invalid("parameters.sequence_id",
			"is missing: sequence_start, sequence_end and sequence_rate are about a sequence")
	}
	return nil
}

func setBool(to *bool, field string, v any) error {
	switch v {
	case true, "true":
		*to = true
	case false, "false":
		*to = false
	default:
		return invalid(field, "is %v, want true or false", v)
	}
	return nil
}

func number(v any) (float64, bool) {
	switch x := v.(type) {
	case int64:
		return float64(x), true
	case uint64:
		return float64(x), true
	case float64:
		return x, true
	case string: // clients that only have string parameters
		f, err := strconv.ParseFloat(x, 64)
		return f, err == nil
	}
	return 0, false
}

// sequenceNumber returns the number that a sequence's name writes in decimal digits, if any: Triton's models
// distinguish numbers from names.
func sequenceNumber(name string) (uint64, bool) {
	n, err := strconv.ParseUint(name, 10, 64)
	return n, err == nil && strconv.FormatUint(n, 10) == name
}

// SequenceID returns the parameter "sequence_id" of a gRPC request.
func SequenceID(name string) *pb.InferParameter {
	switch n, ok := sequenceNumber(name); {
	case !ok:
		return String(name)
	case n > math.MaxInt64:
		return &pb.InferParameter{ParameterChoice: &pb.InferParameter_Uint64Param{Uint64Param: n}}
	default:
		return Int(int64(n))
	}
}

// DecodeParams reads the parameters of a gRPC request.
func DecodeParams(m map[string]*pb.InferParameter) (Params, error) {
	var p Params
	for name, v := range m {
		if err := p.Set(name, parameterValue(v)); err != nil {
			return p, err
		}
	}
	return p, p.check()
}

// parameterValue returns the value of a parameter; nil for one without.
func parameterValue(v *pb.InferParameter) any {
	switch c := v.GetParameterChoice().(type) {
	case *pb.InferParameter_BoolParam:
		return c.BoolParam
	case *pb.InferParameter_Int64Param:
		return c.Int64Param
	case *pb.InferParameter_Uint64Param:
		return c.Uint64Param
	case *pb.InferParameter_DoubleParam:
		return c.DoubleParam
	case *pb.InferParameter_StringParam:
		return c.StringParam
	}
	return nil
}

// Int returns an int64 parameter.
func Int(v int64) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: v}}
}

// Bool returns a bool parameter.
func Bool(v bool) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: v}}
}

// Double returns a double parameter.
func Double(v float64) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_DoubleParam{DoubleParam: v}}
}

// String returns a string parameter.
func String(v string) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_StringParam{StringParam: v}}
}
