package onnxmodel

import "github.com/sluice-serving/sluice/models/onnxmodel/pb"

// Attr is a constant argument of a node.
type Attr = *pb.AttributeProto

// AttrInt makes an integer attribute.
func AttrInt(name string, v int64) Attr {
	return &pb.AttributeProto{Name: name, Type: pb.AttributeProto_INT, I: v}
}

// AttrInts makes an attribute that is a list of integers.
func AttrInts(name string, v ...int64) Attr {
	return &pb.AttributeProto{Name: name, Type: pb.AttributeProto_INTS, Ints: v}
}

// AttrFloat makes a float attribute.
func AttrFloat(name string, v float32) Attr {
	return &pb.AttributeProto{Name: name, Type: pb.AttributeProto_FLOAT, F: v}
}

// AttrFloats makes an attribute that is a list of floats.
func AttrFloats(name string, v ...float32) Attr {
	return &pb.AttributeProto{Name: name, Type: pb.AttributeProto_FLOATS, Floats: v}
}

// AttrString makes a text attribute.
func AttrString(name, v string) Attr {
	return &pb.AttributeProto{Name: name, Type: pb.AttributeProto_STRING, S: []byte(v)}
}
