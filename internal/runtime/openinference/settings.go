package openinference

import (
	"context"
	"slices"
	"strconv"

	"google.golang.org/grpc"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// nodeExtension is what a node of sluice lists among its extensions: it takes settings with a load. Other servers
// refuse parameters that they do not know.
const nodeExtension = "sluice_node"

// settings are the parameters of a load: how the model is to be run, and where it is to be had. They are empty for a
// server that is no node of sluice.
func (r *runner) settings(ctx context.Context, m Model, limit int) map[string]*pb.ModelRepositoryParameter {
	about, err := r.client.ServerMetadata(ctx, &pb.ServerMetadataRequest{}, grpc.WaitForReady(true))
	if err != nil || !slices.Contains(about.GetExtensions(), nodeExtension) {
		return nil
	}
	out := make(map[string]*pb.ModelRepositoryParameter)
	set := func(name, value string) {
		if value != "" && value != "0" {
			out["sluice."+name] = &pb.ModelRepositoryParameter{
				ParameterChoice: &pb.ModelRepositoryParameter_StringParam{StringParam: value},
			}
		}
	}
	set("slots", strconv.Itoa(r.spec.Slots))
	set("batch", strconv.Itoa(limit))
	set("cores", strconv.Itoa(r.spec.Cores))
	set("uri", m.URI)
	set("digest", m.Digest)
	return out
}
