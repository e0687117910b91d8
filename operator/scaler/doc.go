// Package scaler tells autoscalers how busy apps are: KEDA by its external scaler protocol, and the
// HorizontalPodAutoscaler by the external metrics API. What they scale is the least number of instances of an
// InferenceApp; the plan still decides which machines these are on, and has more of them where the load asks for it.
package scaler
