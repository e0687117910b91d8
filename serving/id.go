package serving

// Identifiers are dense indices into the tables of a Spec, so that hot paths index slices instead of hashing names.
type (
	// QueryID numbers the queries of a run in order of arrival at the driver, starting at 1.
	QueryID uint64
	// BatchID numbers the batches an engine starts, starting at 1.
	BatchID uint64
	// InstanceID numbers the instances an engine launches, starting at 1; it is never reused within a run.
	InstanceID int32
	// AppID indexes Spec.Apps.
	AppID int32
	// StageID indexes Spec.Stages: stages of all apps share one numbering.
	StageID int32
	// VariantID indexes Spec.Variants.
	VariantID int32
	// DeviceTypeID indexes Spec.DeviceTypes.
	DeviceTypeID int32
	// WorkerID indexes Spec.Workers.
	WorkerID int32
)

// None marks an absent identifier of any of the index types.
const None = -1
