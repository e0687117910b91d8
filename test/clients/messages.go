package main

import (
	"os"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// messages writes the descriptions of the protocol's messages to a file, as protoc --descriptor_set_out does. Clients
// in Python make classes of them without a compiler.
func messages(file string) error {
	set := &descriptorpb.FileDescriptorSet{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		set.File = append(set.File, protodesc.ToFileDescriptorProto(f))
	}
	add(pb.File_internal_api_oip_pb_open_inference_proto)
	data, err := proto.Marshal(set)
	if err != nil {
		return err
	}
	return os.WriteFile(file, data, 0o644)
}
