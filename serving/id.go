package serving

// Identifiers are dense indices into the tables of a Spec, so that hot paths index slices instead of hashing names.
type (
	// QueryID numbers the queries of a run from 1, in the order in which they reach the driver.
	QueryID uint64
	// BatchID numbers the batches that an engine starts, from 1.
	BatchID uint64
	// InstanceID numbers the instances that an engine launches, from 1. A run never reuses one.
	InstanceID int32
	// AppID indexes Spec.Apps.
	AppID int32
	// StageID indexes Spec.Stages. The stages of all apps share one numbering.
	StageID int32
	// VariantID indexes Spec.Variants.
	VariantID int32
	// DeviceTypeID indexes Spec.DeviceTypes.
	DeviceTypeID int32
	// WorkerID indexes Spec.Workers.
	WorkerID int32
)

// None is an absent identifier, of any of the types that index a table.
const None = -1
