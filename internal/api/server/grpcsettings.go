package server

import (
	"context"

	"github.com/sluice-serving/sluice/internal/api/oip/pb"
)

// TraceSetting implements Triton's extension.
func (g *grpcService) TraceSetting(ctx context.Context, r *pb.TraceSettingRequest) (*pb.TraceSettingResponse, error) {
	change := make(map[string][]string, len(r.GetSettings()))
	for name, v := range r.GetSettings() {
		change[name] = v.GetValue()
	}
	if len(change) > 0 {
		if err := g.mayAdminister(ctx); err != nil {
			return nil, failure(ctx, err)
		}
	}
	now, err := g.s.traceOf(r.GetModelName(), change)
	if err != nil {
		return nil, failure(ctx, err)
	}
	out := &pb.TraceSettingResponse{Settings: make(map[string]*pb.TraceSettingResponse_SettingValue, len(now))}
	for name, value := range now {
		out.Settings[name] = &pb.TraceSettingResponse_SettingValue{Value: value}
	}
	return out, nil
}

// LogSettings implements Triton's extension.
func (g *grpcService) LogSettings(ctx context.Context, r *pb.LogSettingsRequest) (*pb.LogSettingsResponse, error) {
	change := make(map[string]any, len(r.GetSettings()))
	for name, v := range r.GetSettings() {
		switch x := v.GetParameterChoice().(type) {
		case *pb.LogSettingsRequest_SettingValue_BoolParam:
			change[name] = x.BoolParam
		case *pb.LogSettingsRequest_SettingValue_Uint32Param:
			change[name] = x.Uint32Param
		case *pb.LogSettingsRequest_SettingValue_StringParam:
			change[name] = x.StringParam
		}
	}
	if len(change) > 0 {
		if err := g.mayAdminister(ctx); err != nil {
			return nil, failure(ctx, err)
		}
	}
	now, err := g.s.settings.log(change)
	if err != nil {
		return nil, failure(ctx, err)
	}
	type value = pb.LogSettingsResponse_SettingValue
	yes := func(b bool) *value {
		return &value{ParameterChoice: &pb.LogSettingsResponse_SettingValue_BoolParam{BoolParam: b}}
	}
	text := func(s string) *value {
		return &value{ParameterChoice: &pb.LogSettingsResponse_SettingValue_StringParam{StringParam: s}}
	}
	return &pb.LogSettingsResponse{Settings: map[string]*value{
		"log_file": text(""), "log_format": text(now.Format),
		"log_info": yes(now.Info), "log_warning": yes(now.Warning),
		"log_error": yes(now.Error), "log_verbose_level": {
			ParameterChoice: &pb.LogSettingsResponse_SettingValue_Uint32Param{Uint32Param: now.Verbose},
		},
	}}, nil
}
