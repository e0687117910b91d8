package python

import (
	"testing"

	"github.com/sluice-serving/sluice/dataplane"
	"github.com/sluice-serving/sluice/internal/runtime/fake"
	"github.com/sluice-serving/sluice/serving"
)

// An instance may have models in Python and others: each goes to what runs it, also after its variant has been unbound.
func TestOver(t *testing.T) {
	others, err := fake.New(fake.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b, l := backendOf(t, scale, nil)
	r, err := Over(b, others).Launch(t.Context(), dataplane.InstanceSpec{
		Variants: []serving.VariantID{1, 0}, BatchLimit: 2, Slots: 1,
	})
	if err != nil {
		t.Fatal(err, l.text())
	}
	defer r.Close()
	b.Unbind(0)
	for v, want := range []float32{6, 3} { // a fake model returns its inputs
		batch := batchOf([]float32{3})
		batch.Variant = serving.VariantID(v)
		if err := r.Run(t.Context(), batch); err != nil {
			t.Fatal(v, err)
		}
		if got := values(batch.Portions[0].Outputs[0])[0]; got != want {
			t.Errorf("variant %d answers %v, want %v", v, got, want)
		}
		if err := r.Unload(t.Context(), batch.Variant); err != nil {
			t.Error(err)
		}
	}
	none := dataplane.InstanceSpec{Variants: []serving.VariantID{1}}
	if _, err := Over(b, nil).Launch(t.Context(), none); err == nil {
		t.Error("a variant that nothing runs was launched")
	}
}
