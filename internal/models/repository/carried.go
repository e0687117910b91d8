package repository

import "google.golang.org/protobuf/reflect/protoreflect"

// carried are fields of a configuration that clients are shown and that nothing here follows. They are reported like
// unknown ones.
var carried = func() map[protoreflect.FullName]bool {
	out := make(map[protoreflect.FullName]bool)
	for _, name := range []protoreflect.FullName{
		"ModelConfig.cc_model_filenames", "ModelConfig.metric_tags", "ModelConfig.optimization",
		"ModelConfig.model_operations", "ModelConfig.model_transaction_policy", "ModelConfig.batch_input",
		"ModelConfig.batch_output", "ModelConfig.model_repository_agents", "ModelConfig.response_cache",
		"ModelConfig.runtime", "ModelInput.is_non_linear_format_io", "ModelOutput.is_non_linear_format_io",
		"ModelInstanceGroup.profile", "ModelInstanceGroup.rate_limiter", "ModelInstanceGroup.passive",
		"ModelInstanceGroup.secondary_devices", "ModelInstanceGroup.host_policy",
		"ModelSequenceBatching.iterative_sequence", "ModelEnsembling.max_inflight_requests",
		"ModelEnsembling.Step.model_namespace",
	} {
		out["sluice.triton."+name] = true
	}
	return out
}()
