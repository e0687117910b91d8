package scaler

import (
	"context"
	"fmt"
	"math"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

// The keys of a trigger's metadata.
const (
	keyApp       = "app"       // name of the InferenceApp; that of the ScaledObject without it
	keyTarget    = "target"    // queries/s that one instance is to have
	keyThreshold = "threshold" // queries/s above which the app is active; 0 without it
)

// metricRate is the name of the metric: queries/s of an app.
const metricRate = "sluice-queries-per-second"

// trigger is what a ScaledObject asks for.
type trigger struct {
	app               client.ObjectKey
	target, threshold float64
}

// triggerOf reads the metadata of a trigger. The error names the key.
func triggerOf(name, namespace string, metadata map[string]string) (trigger, error) {
	t := trigger{app: client.ObjectKey{Namespace: namespace, Name: metadata[keyApp]}}
	if t.app.Name == "" {
		t.app.Name = name
	}
	if namespace == "" || t.app.Name == "" {
		return t, fmt.Errorf("the trigger names no InferenceApp: set %s in its metadata", keyApp)
	}
	var err error
	if t.target, err = strconv.ParseFloat(metadata[keyTarget], 64); err != nil || math.IsNaN(t.target) ||
		math.IsInf(t.target, 0) || t.target <= 0 {
		return t, fmt.Errorf("%s is %.40q: write the queries/s that one instance is to have, a number above 0",
			keyTarget, metadata[keyTarget])
	}
	if text := metadata[keyThreshold]; text != "" {
		t.threshold, err = strconv.ParseFloat(text, 64)
		if err != nil || t.threshold < 0 || math.IsNaN(t.threshold) || math.IsInf(t.threshold, 0) {
			return t, fmt.Errorf("%s is %.40q: write the queries/s above which the app is active, a number from 0",
				keyThreshold, text)
		}
	}
	return t, nil
}

// rate returns an app's queries/s of the last minute, as its dispatcher reports them; 0 before it has reported any.
func rate(ctx context.Context, apps client.Reader, key client.ObjectKey) (float64, error) {
	var app v1alpha1.InferenceApp
	if err := apps.Get(ctx, key, &app); err != nil {
		if apierrors.IsNotFound(err) {
			return 0, fmt.Errorf("there is no InferenceApp %s: %w", key, err)
		}
		return 0, err
	}
	return rateOf(&app)
}

func rateOf(app *v1alpha1.InferenceApp) (float64, error) {
	text := app.Status.Rate
	if text == "" {
		return 0, nil
	}
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, fmt.Errorf("InferenceApp %s/%s: status.rate is %.40q, which is no rate", app.Namespace, app.Name,
			text)
	}
	return v, nil
}
