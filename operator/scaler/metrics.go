package scaler

import (
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// The external metrics API, which the API server passes on to us.
const (
	metricsGroup   = "external.metrics.k8s.io"
	metricsVersion = metricsGroup + "/v1beta1"
	metricsRoot    = "/apis/" + metricsVersion
)

// value and list are the API's ExternalMetricValue and ExternalMetricValueList.
type (
	value struct {
		MetricName   string            `json:"metricName"`
		MetricLabels map[string]string `json:"metricLabels"`
		Timestamp    metav1.Time       `json:"timestamp"`
		Value        resource.Quantity `json:"value"`
	}
	list struct {
		metav1.TypeMeta `json:",inline"`
		metav1.ListMeta `json:"metadata"`
		Items           []value `json:"items"`
	}
)

// Metrics answers the external metrics API: metric sluice-queries-per-second of the app that the selector app=NAME
// names.
func Metrics(apps client.Reader) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+metricsRoot, func(w http.ResponseWriter, _ *http.Request) {
		reply(w, http.StatusOK, &metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: metricsVersion,
			APIResources: []metav1.APIResource{{Name: metricRate, Namespaced: true, Kind: "ExternalMetricValueList",
				Verbs: metav1.Verbs{"get"}}}})
	})
	mux.HandleFunc("GET /apis", func(w http.ResponseWriter, _ *http.Request) {
		version := metav1.GroupVersionForDiscovery{GroupVersion: metricsVersion, Version: "v1beta1"}
		reply(w, http.StatusOK, &metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
			Groups: []metav1.APIGroup{{Name: metricsGroup, Versions: []metav1.GroupVersionForDiscovery{version},
				PreferredVersion: version}}})
	})
	mux.HandleFunc("GET "+metricsRoot+"/namespaces/{namespace}/{metric}", func(w http.ResponseWriter, r *http.Request) {
		out, err := measured(r, apps)
		switch {
		case apierrors.IsNotFound(err):
			refuse(w, http.StatusNotFound, err)
		case err != nil:
			refuse(w, http.StatusBadRequest, err)
		default:
			reply(w, http.StatusOK, out)
		}
	})
	return mux
}

func measured(r *http.Request, apps client.Reader) (*list, error) {
	if m := r.PathValue("metric"); m != metricRate {
		return nil, fmt.Errorf("there is no metric %.100q: there is %s", m, metricRate)
	}
	selector, err := labels.Parse(r.URL.Query().Get("labelSelector"))
	if err != nil {
		return nil, fmt.Errorf("labelSelector: %w", err)
	}
	name, ok := selector.RequiresExactMatch(keyApp)
	if !ok {
		return nil, fmt.Errorf("labelSelector is %.100q: name the InferenceApp with matchLabels {app: NAME}",
			selector.String())
	}
	v, err := rate(r.Context(), apps, client.ObjectKey{Namespace: r.PathValue("namespace"), Name: name})
	if err != nil {
		return nil, err
	}
	return &list{TypeMeta: metav1.TypeMeta{Kind: "ExternalMetricValueList", APIVersion: metricsVersion},
		Items: []value{{
			MetricName: metricRate, MetricLabels: map[string]string{keyApp: name},
			Timestamp: metav1.NewTime(time.Now()),
			Value:     *resource.NewMilliQuantity(int64(v*1000), resource.DecimalSI)}}}, nil
}

func refuse(w http.ResponseWriter, code int, err error) {
	reply(w, code, &metav1.Status{TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status: metav1.StatusFailure, Code: int32(code), Message: err.Error()})
}

func reply(w http.ResponseWriter, code int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // who asked has gone
}
