package onnxmodel

import "github.com/sluice-serving/sluice/internal/models/onnxmodel/pb"

// Attr is a constant argument of a node.
type Attr = *pb.AttributeProto

// AttrInt returns a node's attribute of a name with an integer as its value.
func AttrInt(name string, v int64) Attr {
	return &pb.AttributeProto{Name: name, Type: pb.AttributeProto_INT, I: v}
}

// AttrInts returns a node's attribute of a name with a list of integers as its value. v is kept.
func AttrInts(name string, v ...int64) Attr {
	return &pb.AttributeProto{Name: name, Type: pb.AttributeProto_INTS, Ints: v}
}

// AttrString returns a node's attribute of a name with a text as its value.
func AttrString(name, v string) Attr {
	return &pb.AttributeProto{Name: name, Type: pb.AttributeProto_STRING, S: []byte(v)}
}
