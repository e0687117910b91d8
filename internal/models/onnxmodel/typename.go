package onnxmodel

import "github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"

// maxTypeDepth bounds how far typeName looks into types within types.
const maxTypeDepth = 8

// typeName says what a type is: "sequence of FLOAT tensors". plural is "s" for several of it.
func typeName(t *pb.TypeProto, plural string, depth int) string {
	if depth > maxTypeDepth {
		return "..."
	}
	within := func(t *pb.TypeProto, plural string) string { return typeName(t, plural, depth+1) }
	switch x := t.GetValue().(type) {
	case *pb.TypeProto_TensorType:
		return elementName(x.TensorType.GetElemType()) + " tensor" + plural
	case *pb.TypeProto_SparseTensorType:
		return "sparse " + elementName(x.SparseTensorType.GetElemType()) + " tensor" + plural
	case *pb.TypeProto_SequenceType:
		return "sequence" + plural + " of " + within(x.SequenceType.GetElemType(), "s")
	case *pb.TypeProto_MapType:
		return "map" + plural + " from " + elementName(x.MapType.GetKeyType()) + " to " +
			within(x.MapType.GetValueType(), "s")
	case *pb.TypeProto_OptionalType:
		return "optional " + within(x.OptionalType.GetElemType(), plural)
	}
	return "value" + plural + " of an unknown type"
}

// elementName is ONNX's name of an element type.
func elementName(t int32) string { return pb.TensorProto_DataType(t).String() }
