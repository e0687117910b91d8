package oip

import (
	"math"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/api/oip/pb"
)

// Params are the request parameters that sluice acts upon. Others are passed over, as the protocol wants of parameters
// a server does not know.
type Params struct {
	Timeout     time.Duration // "timeout", in microseconds on the wire; 0 means the app's objective
	Priority    int32         // "priority": 1 the highest, 0 the default
	MinAccuracy float64       // "min_accuracy" in [0, 1]
	// Sequence is "sequence_id", a name or a number in decimal digits, of Triton's sequence extension: what the request
	// is a part of; "" is none. SequenceStart and SequenceEnd are "sequence_start" and "sequence_end": the first and
	// the last of it.
	Sequence                   string
	SequenceStart, SequenceEnd bool
	// SequenceRate is "sequence_rate", ours: how many requests of the sequence the client will send in a second; 0 does
	// not say.
	SequenceRate float64
	// StageTimings is "stage_timings": the answer is to tell of every stage when it was ready, and how long it waited
	// and ran.
	StageTimings bool
}

// mostRate bounds what a client may say of its sequence, in requests a second: machines are rented on its word.
const mostRate = 1e5

// maxSequence bounds the name of a sequence, in bytes.
const maxSequence = 256

// Set takes one parameter. v is a bool, int64, uint64, float64 or string.
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
		if !ok || n < 0 || n > math.MaxInt32 || n != math.Trunc(n) {
			return invalid(field, "is %v, want a whole number, 1 the highest, 0 the default", v)
		}
		p.Priority = int32(n)
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
			p.Sequence = "" // the extension's word for none
		}
	case "sequence_start":
		return truth(&p.SequenceStart, field, v)
	case "sequence_rate":
		r, ok := number(v)
		if !ok || !(r >= 0 && r <= mostRate) {
			return invalid(field, "is %v, want a number of requests a second, 0 to %v", v, mostRate)
		}
		p.SequenceRate = r
	case "sequence_end":
		return truth(&p.SequenceEnd, field, v)
	case "stage_timings":
		return truth(&p.StageTimings, field, v)
	}
	return nil
}

// check tells what is wrong with the parameters together.
func (p *Params) check() error {
	if (p.SequenceStart || p.SequenceEnd || p.SequenceRate > 0) && p.Sequence == "" {
		return invalid("parameters.sequence_id",
			"is missing: sequence_start, sequence_end and sequence_rate are about a sequence")
	}
	return nil
}

func truth(to *bool, field string, v any) error {
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

// sequenceNumber is the number that the name of a sequence is in decimal digits, if it is one: Triton's models tell
// numbers from names.
func sequenceNumber(name string) (uint64, bool) {
	n, err := strconv.ParseUint(name, 10, 64)
	return n, err == nil && strconv.FormatUint(n, 10) == name
}

// SequenceID makes the parameter "sequence_id" of a gRPC request.
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
		var x any
		switch c := v.GetParameterChoice().(type) {
		case *pb.InferParameter_BoolParam:
			x = c.BoolParam
		case *pb.InferParameter_Int64Param:
			x = c.Int64Param
		case *pb.InferParameter_Uint64Param:
			x = c.Uint64Param
		case *pb.InferParameter_DoubleParam:
			x = c.DoubleParam
		case *pb.InferParameter_StringParam:
			x = c.StringParam
		}
		if err := p.Set(name, x); err != nil {
			return p, err
		}
	}
	return p, p.check()
}

// Int makes a parameter.
func Int(v int64) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: v}}
}

// Bool makes a parameter.
func Bool(v bool) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_BoolParam{BoolParam: v}}
}

// Double makes a parameter.
func Double(v float64) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_DoubleParam{DoubleParam: v}}
}

// String makes a parameter.
func String(v string) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_StringParam{StringParam: v}}
}
