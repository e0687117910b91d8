package dispatcher

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"

	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
	"github.com/sluice-serving/sluice/operator/dispatcher/cells"
	"github.com/sluice-serving/sluice/operator/dispatcher/front"
	"github.com/sluice-serving/sluice/operator/dispatcher/peertls"
	"github.com/sluice-serving/sluice/operator/dispatcher/runner"
)

// AnnotationWeight is on a cell's ConfigMap: its share of apps that several cells have, relative to theirs. Default: 1.
const AnnotationWeight = "sluice.dev/weight"

// newCache watches the leases and the configurations of a fleet.
func newCache(o *Options, api client.Client) (cache.Cache, error) {
	mine := labels.SelectorFromSet(labels.Set{v1alpha1.LabelFleet: o.Fleet})
	return cache.New(o.Config, cache.Options{
		Scheme:            api.Scheme(),
		Mapper:            api.RESTMapper(),
		DefaultNamespaces: map[string]cache.Config{o.Namespace: {}},
		ByObject: map[client.Object]cache.ByObject{
			&coordinationv1.Lease{}: {Label: mine}, &corev1.ConfigMap{}: {Label: mine},
		},
	})
}

// configurations follows the ConfigMaps of the cells.
type configurations struct {
	o       *Options
	table   *front.Table
	runs    *runner.Manager
	elector *cells.Elector

	mu     sync.Mutex
	all    bool // that were there at first are known
	owners map[int]metav1.OwnerReference
	cells  map[int]front.Cell
}

// cellOf returns the cell of a ConfigMap; false for one that is no cell's.
func (c *configurations) cellOf(m *corev1.ConfigMap) (int, bool) {
	n, err := strconv.Atoi(m.Labels[v1alpha1.LabelCell])
	return n, err == nil && n >= 0 && m.Name == cells.LeaseName(c.o.Fleet, n)
}

// set takes a configuration.
func (c *configurations) set(m *corev1.ConfigMap) {
	n, ok := c.cellOf(m)
	if !ok {
		return
	}
	weight := 1.0
	if text := m.Annotations[AnnotationWeight]; text != "" {
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || !(x > 0) {
			c.o.Log.Warn("a cell's weight is no number above 0, and counts as 1", "cell", n, "weight", text)
		} else {
			weight = x
		}
	}
	files, err := cell.Get(m)
	if err == nil {
		err = files.Own(m)
	}
	if err != nil {
		c.o.Log.Error("a cell's configuration cannot be read; what it was stays", "cell", n, "error", err)
		return
	}
	parsed, err := front.ParseCell(files[cell.KeyConfig], weight)
	if err != nil {
		c.o.Log.Error("a cell's configuration cannot be read; what it was stays", "cell", n, "error", err)
		return
	}
	if parsed.Shares, err = cell.SharesOf(files); err != nil {
		c.o.Log.Warn("the parts of apps that several cells have are not known", "cell", n, "error", err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cells[n] = parsed
	c.owners[n] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: m.Name, UID: m.UID}
	c.runs.Configure(n, files)
	c.tell()
}

// share is a cell's part of an app, above 0 and at most 1.
func (c *configurations) share(n int, app string) float64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cells[n].Shares.Of(app)
}

// remove takes a cell away.
func (c *configurations) remove(m *corev1.ConfigMap) {
	n, ok := c.cellOf(m)
	if !ok {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.cells, n)
	delete(c.owners, n)
	c.tell()
}

// tell passes on what is known, once that is all: half of the cells would be taken for the whole fleet. mu is held.
func (c *configurations) tell() {
	if !c.all {
		return
	}
	c.table.SetCells(c.cells)
	c.elector.SetCells(c.owners)
}

// apps are the apps of a cell.
func (c *configurations) apps(n int) []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cells[n].Apps
}

// synced tells the others that all configurations are known, of which there may be none.
func (c *configurations) synced() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.all = true
	c.tell()
}

// handOn hands what the cache sees to the elector and to the configurations. It returns what reports whether all that
// was there at first has been handed on.
func handOn(ctx context.Context, from cache.Cache, elector *cells.Elector, c *configurations,
	replica *peertls.Replica) (func() bool, error) {
	var synced []toolscache.InformerSynced
	add := func(kind client.Object, h toolscache.ResourceEventHandlerFuncs) error {
		informer, err := from.GetInformer(ctx, kind)
		if err != nil {
			return fmt.Errorf("watching %T: %w", kind, err)
		}
		r, err := informer.AddEventHandler(h)
		if err == nil {
			synced = append(synced, r.HasSynced)
		}
		return err
	}
	seen := func(x any) {
		if l, ok := x.(*coordinationv1.Lease); ok {
			meet(replica, c.o.Fleet, l.Name, l)
			elector.See(l)
		}
	}
	if err := add(&coordinationv1.Lease{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc: seen, UpdateFunc: func(_, x any) { seen(x) },
		DeleteFunc: func(x any) {
			if l, ok := last(x).(*coordinationv1.Lease); ok {
				meet(replica, c.o.Fleet, l.Name, nil)
				elector.Gone(l.Name)
			}
		},
	}); err != nil {
		return nil, err
	}
	set := func(x any) {
		if m, ok := x.(*corev1.ConfigMap); ok {
			c.set(m)
		}
	}
	err := add(&corev1.ConfigMap{}, toolscache.ResourceEventHandlerFuncs{
		AddFunc: set, UpdateFunc: func(before, x any) {
			a, ok := before.(*corev1.ConfigMap)
			if b, also := x.(*corev1.ConfigMap); ok && also && sameContents(a, b) {
				return
			}
			set(x)
		},
		DeleteFunc: func(x any) {
			if m, ok := last(x).(*corev1.ConfigMap); ok {
				c.remove(m)
			}
		},
	})
	return func() bool {
		for _, done := range synced {
			if !done() {
				return false
			}
		}
		return true
	}, err
}

// sameContents reports whether nothing has changed of a ConfigMap that counts here.
func sameContents(a, b *corev1.ConfigMap) bool {
	return maps.Equal(a.Data, b.Data) && maps.EqualFunc(a.BinaryData, b.BinaryData, bytes.Equal) &&
		a.Annotations[AnnotationWeight] == b.Annotations[AnnotationWeight]
}

// last is the object of a deletion, which a watch may have missed.
func last(x any) any {
	if gone, ok := x.(toolscache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return x
}

// lowest is the lowest cell that has an app; -1 for none.
func (c *configurations) lowest(app string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := -1
	for n := range c.cells {
		if (out < 0 || n < out) && slices.Contains(c.cells[n].Apps, app) {
			out = n
		}
	}
	return out
}
