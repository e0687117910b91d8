package oip

import (
	"fmt"
	"math"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// RequestedOutput is an output that a client asks for.
type RequestedOutput struct {
	Name   string
	Binary *bool // the form over HTTP; nil where the client does not say
	// Classes asks for the labels of so many classes with the highest values in place of the values; 0 for the values.
	Classes int
	Shared  *Shared // where the output is to be written; nil for into the answer
}

// maxClasses bounds the classes that a client asks for.
const maxClasses = 1 << 20

// parameter returns a value of a map of parameters: a bool, int64, uint64, float64 or string, nil for a missing one.
type parameter func(name string) any

// set reads the parameters of a requested output that both protocols have.
func (o *RequestedOutput) set(field string, value parameter) error {
	var err error
	if o.Shared, err = sharedOf(field, value); err != nil {
		return err
	}
	v := value("classification")
	if v == nil {
		return nil
	}
	n, ok := number(v)
	if !ok || n < 0 || n > maxClasses || n != math.Trunc(n) {
		return invalid(field+" classification", "is %v, want a whole number of classes", v)
	}
	o.Classes = int(n)
	if o.Classes > 0 && o.Shared != nil {
		return invalid(field+" classification", "is not written to shared memory: leave one of them out")
	}
	return nil
}

// DecodeRequested reads the outputs that a gRPC request asks for; nil means all.
func DecodeRequested(r *pb.ModelInferRequest) ([]RequestedOutput, error) {
	if len(r.Outputs) > MaxTensors {
		return nil, invalid("outputs", "has %d entries, at most %d are taken", len(r.Outputs), MaxTensors)
	}
	var out []RequestedOutput
	for k, o := range r.Outputs {
		one := RequestedOutput{Name: o.GetName()}
		if err := one.set(fmt.Sprintf("outputs[%d]", k), messageParameter(o.GetParameters())); err != nil {
			return nil, err
		}
		out = append(out, one)
	}
	return out, nil
}

func messageParameter(m map[string]*pb.InferParameter) parameter {
	return func(name string) any {
		p := m[name]
		if p == nil {
			return nil
		}
		return parameterValue(p)
	}
}

func jsonParameter(m jsonFields) parameter {
	return func(name string) any {
		v, ok := m.get(name)
		if !ok {
			return nil
		}
		return scalarValue(v)
	}
}
