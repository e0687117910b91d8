package oip

import (
	"math"
	"strconv"
	"time"

	"github.com/sluice-serving/sluice/oip/pb"
)

// Params are the request parameters that sluice acts upon. Others are passed over, as the protocol wants of parameters a
// server does not know.
type Params struct {
	Timeout     time.Duration // "timeout", in microseconds on the wire; 0 means the app's objective
	Priority    int32         // "priority": 1 the highest, 0 the default
	MinAccuracy float64       // "min_accuracy" in [0, 1]
}

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
	return p, nil
}

// Int, Double and String make parameters.
func Int(v int64) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_Int64Param{Int64Param: v}}
}

// Double makes a parameter.
func Double(v float64) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_DoubleParam{DoubleParam: v}}
}

// String makes a parameter.
func String(v string) *pb.InferParameter {
	return &pb.InferParameter{ParameterChoice: &pb.InferParameter_StringParam{StringParam: v}}
}
