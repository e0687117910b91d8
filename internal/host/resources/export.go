package resources

import (
	"cmp"
	"slices"

	"github.com/sluice-serving/sluice/internal/config"
	"github.com/sluice-serving/sluice/internal/host"
	"github.com/sluice-serving/sluice/internal/host/fault"
	"github.com/sluice-serving/sluice/internal/measure/profiler"
	"github.com/sluice-serving/sluice/serving"
)

// maxMost is the largest number of machines of a type that a resource can say.
const maxMost = 10_000

// Exporting says how a configuration becomes resources.
type Exporting struct {
	Fleet     string // name of the fleet; empty for `default`
	Namespace string // of all resources; empty leaves it to who applies them
	// Models is where workers find the model repository: pvc://CLAIM/PATH, https://HOST/PATH, s3://BUCKET/PATH or
	// file:///PATH. Empty is the repository's folder, as a path in the workers' image.
	Models string
	// Resource is the extended resource that accelerators are; empty for nvidia.com/gpu.
	Resource string
	// Dispatchers is how many front ends the fleet has; 0 for 2.
	Dispatchers int
}

// exporter makes the resources of one configuration.
type exporter struct {
	List
	how      Exporting
	file     *config.File
	tables   *config.Resolved
	spec     *serving.Spec
	measured *profiler.File // nil where no profile is listed
	resource []string       // by DeviceTypeID: name of the machine type, or of the part; empty where it is left out
	apps     []string       // by AppID: name of the resource; empty where it is left out
	models   map[serving.VariantID]model
	types    names // of machine types
	called   names // of apps
}

// Export makes a Fleet, MachineTypes, InferenceApps and Profiles of a configuration. The error is of kind fault.Usage
// for settings that cannot be, fault.Config for a profile that cannot be read.
func Export(o *host.Opened, how Exporting) (*List, error) {
	how = how.withDefaults(o)
	if err := how.check(); err != nil {
		return nil, err
	}
	e := &exporter{how: how, file: o.File(), tables: o.Tables(), spec: o.Spec(), models: map[serving.VariantID]model{},
		types: names{}, called: names{}}
	if err := e.profiles(); err != nil {
		return nil, err
	}
	for _, s := range e.file.Given() {
		if why := reason(s.Path); why != "" {
			e.leave(s.Path, s.Line, "%s", why)
		}
	}
	e.fleet()
	e.machineTypes()
	for a := range e.spec.Apps {
		if err := e.app(serving.AppID(a)); err != nil {
			return nil, err
		}
	}
	e.profileResources()
	return e.sorted(), nil
}

func (how Exporting) withDefaults(o *host.Opened) Exporting {
	if how.Fleet == "" {
		how.Fleet = "default"
	}
	if how.Resource == "" {
		how.Resource = "nvidia.com/gpu"
	}
	if how.Dispatchers == 0 {
		how.Dispatchers = 2
	}
	if how.Models == "" {
		how.Models = "file:///models"
		if o.File().Models.Repository != "" {
			how.Models = folderURI(o.File().Path(o.File().Models.Repository))
		}
	}
	return how
}

func (how *Exporting) check() error {
	for _, x := range []struct{ what, name string }{{"fleet", how.Fleet}, {"namespace", how.Namespace}} {
		if x.name != "" && !label(x.name) {
			return fault.Errorf(fault.Usage, "the %s cannot be called %q: use lower-case letters, digits and "+
				"dashes, at "+
				"most %d of them", x.what, x.name, maxName)
		}
	}
	if how.Dispatchers < 1 || how.Dispatchers > 64 {
		return fault.Errorf(fault.Usage, "a fleet has 1 to 64 dispatchers, not %d", how.Dispatchers)
	}
	return checkBase(how.Models)
}

// profiles reads the profiles that the file lists.
func (e *exporter) profiles() error {
	var files []*profiler.File
	for _, path := range e.tables.Profiles {
		f, err := profiler.ReadFile(path)
		if err != nil {
			return fault.Wrap(fault.Config, err)
		}
		kept, _ := f.Only(e.spec)
		files = append(files, kept)
	}
	if len(files) == 0 {
		return nil
	}
	merged, err := profiler.Merge(files...)
	if err != nil {
		return fault.Wrap(fault.Config, err)
	}
	e.measured = merged
	return nil
}

func (e *exporter) meta(name string) Meta { return Meta{Name: name, Namespace: e.how.Namespace} }

// lost is leave with the line of a setting, or of the first one in it.
func (e *exporter) lost(path, format string, args ...any) {
	line := 0
	for _, s := range e.file.Given() {
		if below(s.Path, path) {
			line = s.Line
			break
		}
	}
	e.leave(path, line, format, args...)
}

func (e *exporter) fleet() {
	s := e.file.System
	if len(e.file.Apps) > 0 {
		s = e.file.SystemOf(0) // all apps have the same
	}
	if s.Name == "" {
		s.Name = "sluice" // the router and the batcher are in the list of what was left out
	}
	e.add("Fleet", e.meta(e.how.Fleet), object(field{"", &s}, field{"dispatchers", e.how.Dispatchers},
		field{"tls", e.tls()}, field{"access", e.access()}, field{"tenants", e.tenants()}))
}

// machineTypes makes one of each device type that is no part.
func (e *exporter) machineTypes() {
	e.resource = make([]string, len(e.spec.DeviceTypes))
	for d := range e.spec.DeviceTypes {
		x := &e.spec.DeviceTypes[d]
		if x.Part {
			e.resource[d] = x.Name
			continue
		}
		e.machineType(serving.DeviceTypeID(d))
	}
}

func (e *exporter) machineType(d serving.DeviceTypeID) {
	x, path := &e.spec.DeviceTypes[d], at("device_types", int(d))
	count, backend := 0, ""
	for w := range e.spec.Workers {
		if e.spec.Workers[w].DeviceType != d {
			continue
		}
		count++
		kind := backendOf[e.tables.Backends[w].Kind]
		if backend != "" && kind != backend {
			e.lost(path+".name", "workers of one machine type have one backend, and here both %s and %s: it gets %s; "+
				"make two device types of it", backend, kind, backend)
			continue
		}
		backend = kind
	}
	most := x.MaxMachines
	if most == 0 {
		most = count
	}
	if most == 0 {
		e.lost(path, "there is no worker of it, and it does not say how many there can be: write `most`")
		return
	}
	if most > maxMost {
		e.lost(path+".most", "there can be %d machines of a type, not %d", maxMost, most)
		most = maxMost
	}
	name, same := e.types.give(x.Name)
	if !same {
		e.note("device type %q is machine type %q: Kubernetes takes lower-case letters, digits and "+
			"dashes", x.Name, name)
	}
	e.resource[d] = name
	m := e.file.DeviceTypes[d]
	m.Name, m.Most, m.Tenure = "", most, cmp.Or(m.Tenure, "owned")
	if x.Tenure == serving.Rented && x.PricePerHour == 0 {
		m.Tenure = "owned"
		e.lost(path+".tenure", "a rented machine needs a price: it becomes an owned one")
	}
	accelerators := map[string]int{}
	if x.Accelerators > 0 {
		accelerators[e.how.Resource] = x.Accelerators
		e.note("accelerators are asked for as %s", e.how.Resource)
	}
	var parts []config.DeviceType
	for p := range e.spec.DeviceTypes {
		fits := func(w serving.WorkerID) bool { return e.spec.Workers[w].DeviceType == d }
		if e.spec.DeviceTypes[p].Part && slices.ContainsFunc(e.spec.Hosts(serving.DeviceTypeID(p)), fits) {
			parts = append(parts, e.file.DeviceTypes[p])
		}
	}
	e.add("MachineType", e.meta(name), object(field{"fleet", e.how.Fleet}, field{"", &m},
		field{"accelerators", accelerators}, field{"parts", parts}, field{"backend", cmp.Or(backend, "sluice")}))
}

// backendOf is the backend of a machine type by the kind of its workers' backend.
var backendOf = map[string]string{
	"onnx": "sluice", "python": "sluice", "openinference": "triton", "supplied": "sluice", "fake": "fake",
}
