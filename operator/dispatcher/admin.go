package dispatcher

import (
	"fmt"
	"net/http"
	"net/http/pprof"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// openAdmin binds the address of metrics, health and the cells' own pages.
func (d *Dispatcher) openAdmin() error {
	l, err := d.o.Net.Listen(d.o.Admin)
	if err != nil {
		return err
	}
	d.adminL = l
	d.metrics.MustRegister(&heldCells{d})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("ok\n")) })
	mux.HandleFunc("GET /readyz", d.readyz)
	mux.Handle("GET /metrics", promhttp.HandlerFor(d.gatherer(), promhttp.HandlerOpts{
		MaxRequestsInFlight: 8, Timeout: 10 * time.Second, EnableOpenMetrics: true,
	}))
	mux.HandleFunc("/cells/{cell}/", d.cellPage)
	if d.o.Profiling {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	}
	d.admin = &http.Server{Handler: mux, ReadTimeout: 30 * time.Second, IdleTimeout: 2 * time.Minute,
		MaxHeaderBytes: 1 << 16}
	return nil
}

// readyz says whether the pod is to get queries.
func (d *Dispatcher) readyz(w http.ResponseWriter, _ *http.Request) {
	if !d.front.Ready() || d.elector.IsCutOff() {
		http.Error(w, "the cells of the fleet are not known yet, or this dispatcher is stopping, or it alone does not "+
			"reach the API server", http.StatusServiceUnavailable)
		return
	}
	_, _ = w.Write([]byte("ok\n"))
}

// cellPage answers what a cell's own admin address would: its dashboard, decisions and explanations. Nothing can be
// changed over it.
func (d *Dispatcher) cellPage(w http.ResponseWriter, r *http.Request) {
	n, err := strconv.Atoi(r.PathValue("cell"))
	if err != nil {
		http.NotFound(w, r)
		return
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		w.Header().Set("Allow", http.MethodGet)
		http.Error(w, "a cell can be looked at here, not changed: change its resources", http.StatusMethodNotAllowed)
		return
	}
	run := d.runs.Use(n)
	if run == nil {
		http.Error(w, fmt.Sprintf("cell %d is not served by this pod", n), http.StatusNotFound)
		return
	}
	defer run.Done()
	http.StripPrefix(strings.TrimSuffix(fmt.Sprintf("/cells/%d/", n), "/"), run.Server.AdminHandler()).ServeHTTP(w, r)
}

// heldCells is the series of the cells that this replica holds and serves.
type heldCells struct{ d *Dispatcher }

var (
	heldDesc = prometheus.NewDesc("sluice_dispatcher_cell_held",
		"1 for every cell whose lease this replica holds.", []string{"cell"}, nil)
	servedDesc = prometheus.NewDesc("sluice_dispatcher_cell_served",
		"1 for every cell whose queries this replica answers.", []string{"cell"}, nil)
	reachedDesc = prometheus.NewDesc("sluice_dispatcher_api_reached_seconds",
		"Time since the API server last answered a renewal or a look at a lease.", nil, nil)
)

// Describe implements prometheus.Collector.
func (h *heldCells) Describe(to chan<- *prometheus.Desc) {
	to <- heldDesc
	to <- servedDesc
	to <- reachedDesc
}

// Collect implements prometheus.Collector.
func (h *heldCells) Collect(to chan<- prometheus.Metric) {
	for _, n := range h.d.elector.Held() {
		to <- prometheus.MustNewConstMetric(heldDesc, prometheus.GaugeValue, 1, strconv.Itoa(n))
	}
	for n := range h.d.runs.Runs() {
		to <- prometheus.MustNewConstMetric(servedDesc, prometheus.GaugeValue, 1, strconv.Itoa(n))
	}
	if at := h.d.elector.Reached(); !at.IsZero() {
		to <- prometheus.MustNewConstMetric(reachedDesc, prometheus.GaugeValue, time.Since(at).Seconds())
	}
}
