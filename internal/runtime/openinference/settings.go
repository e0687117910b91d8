package openinference

import (
	"strconv"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// nodeExtension is what a node of sluice lists among its extensions: it takes settings with a load. Other servers
// refuse parameters that they do not know.
const nodeExtension = "sluice_node"

// settings are the parameters of a load for a node of sluice: how the model is to be run, and where it is to be had.
func (r *runner) settings(m Model, limit int) map[string]*pb.ModelRepositoryParameter {
	out := make(map[string]*pb.ModelRepositoryParameter)
	set := func(name, value string) {
		if value != "" && value != "0" {
			out["sluice."+name] = stringParameter(value)
		}
	}
	set("slots", strconv.Itoa(r.spec.Slots))
	set("batch", strconv.Itoa(limit))
	set("cores", strconv.Itoa(r.spec.Cores))
	set("uri", m.URI)
	set("digest", m.Digest)
	if m.sent != nil {
		set("class", m.sent.Class)
	}
	return out
}

func stringParameter(s string) *pb.ModelRepositoryParameter {
	return &pb.ModelRepositoryParameter{ParameterChoice: &pb.ModelRepositoryParameter_StringParam{StringParam: s}}
}
