package oip

import (
	"fmt"
	"strconv"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
	"github.com/sluice-serving/sluice/tensor"
)

// Shared is a part of a region of shared memory that a client has registered.
type Shared struct {
	Region       string
	Offset, Size int64 // in bytes
}

// Regions read the contents of shared memory. The slice is the caller's.
type Regions func(Shared) ([]byte, error)

// The parameters of a tensor in shared memory.
const (
	sharedRegion = "shared_memory_region"
	sharedOffset = "shared_memory_offset"
	sharedSize   = "shared_memory_byte_size"
)

// sharedOf reads the parameters of a tensor in shared memory; nil for one that is not there.
func sharedOf(field string, value parameter) (*Shared, error) {
	region, offset, size := value(sharedRegion), value(sharedOffset), value(sharedSize)
	if region == nil {
		if offset != nil || size != nil {
			return nil, invalid(field+" "+sharedRegion, "is missing")
		}
		return nil, nil
	}
	s := &Shared{}
	var ok bool
	if s.Region, ok = region.(string); !ok || s.Region == "" {
		return nil, invalid(field+" "+sharedRegion, "is %v, want the name of a region", region)
	}
	if s.Size, ok = size.(int64); !ok || s.Size < 0 {
		if _, err := strconv.ParseUint(fmt.Sprint(size), 10, 64); err == nil {
			return nil, invalid(field+" "+sharedSize, "Integer overflow detected: byte_size %v is larger than "+
				"any region", size)
		}
		return nil, invalid(field+" "+sharedSize, "is %v, want a number of bytes", size)
	}
	if offset != nil {
		if s.Offset, ok = offset.(int64); !ok || s.Offset < 0 {
			return nil, invalid(field+" "+sharedOffset, "Invalid offset for shared memory region '%.200s': is %v, "+
				"want a number of bytes", s.Region, offset)
		}
	}
	return s, nil
}

// fetch reads the data of an input that is in shared memory.
func (s *Shared) fetch(field string, t *tensor.Tensor, regions Regions) error {
	if regions == nil {
		return Errorf(Unsupported, field, "shared memory is not supported: send the data")
	}
	var err error
	if t.Data, err = regions(*s); err != nil {
		return err
	}
	if err := t.Validate(); err != nil {
		return invalid(field, "%v", err)
	}
	return nil
}

// sharedInputs says by input which of a gRPC request's are in shared memory, nil for none, and how many are not.
func sharedInputs(r *pb.ModelInferRequest) (where []*Shared, inside int, err error) {
	inside = len(r.Inputs)
	for k, in := range r.Inputs {
		if len(in.GetParameters()) == 0 {
			continue
		}
		s, err := sharedOf(inputField(k, in.GetName(), ""), messageParameter(in.GetParameters()))
		if err != nil {
			return nil, 0, err
		}
		if s == nil {
			continue
		}
		if where == nil {
			where = make([]*Shared, len(r.Inputs))
		}
		where[k] = s
		inside--
	}
	return where, inside, nil
}

// message reads the data of a gRPC request's input that is in shared memory.
func (s *Shared) message(field string, in *pb.ModelInferRequest_InferInputTensor, regions Regions) ([]byte, error) {
	t := tensor.Tensor{Name: in.GetName(), DType: tensor.ParseDType(in.GetDatatype()), Shape: in.GetShape()}
	err := s.fetch(field, &t, regions)
	return t.Data, err
}

// appendShared writes the parameters of an output that is in shared memory.
func appendShared(b []byte, s *Shared) []byte {
	b = append(b, `"`+sharedRegion+`":`...)
	b = appendString(b, s.Region)
	b = append(b, `,"`+sharedOffset+`":`...)
	b = appendScalar(b, s.Offset)
	b = append(b, `,"`+sharedSize+`":`...)
	return appendScalar(b, s.Size)
}

// sharedMessage is the same for a gRPC answer.
func sharedMessage(s *Shared) map[string]*pb.InferParameter {
	return map[string]*pb.InferParameter{
		sharedRegion: String(s.Region), sharedOffset: Int(s.Offset), sharedSize: Int(s.Size),
	}
}
