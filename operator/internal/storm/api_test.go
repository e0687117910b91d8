package storm

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

// resource is a kind of object that the API server has.
type resource struct {
	gvk        schema.GroupVersionKind
	plural     string
	everywhere bool // it is in no namespace
	status     bool // it has a status that is written apart, and a generation
	forgotten  bool // events: nobody here reads them
}

var resources = func() (out []*resource) {
	add := func(gv schema.GroupVersion, kind, plural string, r resource) {
		r.gvk, r.plural = gv.WithKind(kind), plural
		out = append(out, &r)
	}
	add(corev1.SchemeGroupVersion, "Pod", "pods", resource{status: true})
	add(corev1.SchemeGroupVersion, "Node", "nodes", resource{status: true, everywhere: true})
	add(corev1.SchemeGroupVersion, "ConfigMap", "configmaps", resource{})
	add(corev1.SchemeGroupVersion, "Secret", "secrets", resource{})
	add(corev1.SchemeGroupVersion, "Service", "services", resource{})
	add(corev1.SchemeGroupVersion, "ServiceAccount", "serviceaccounts", resource{})
	add(corev1.SchemeGroupVersion, "Event", "events", resource{forgotten: true})
	add(eventsv1.SchemeGroupVersion, "Event", "events", resource{forgotten: true})
	add(appsv1.SchemeGroupVersion, "Deployment", "deployments", resource{status: true})
	add(batchv1.SchemeGroupVersion, "Job", "jobs", resource{status: true})
	add(policyv1.SchemeGroupVersion, "PodDisruptionBudget", "poddisruptionbudgets", resource{status: true})
	add(rbacv1.SchemeGroupVersion, "RoleBinding", "rolebindings", resource{})
	add(coordinationv1.SchemeGroupVersion, "Lease", "leases", resource{})
	add(v1alpha1.GroupVersion, "Fleet", "fleets", resource{status: true})
	add(v1alpha1.GroupVersion, "InferenceApp", "inferenceapps", resource{status: true})
	add(v1alpha1.GroupVersion, "MachineType", "machinetypes", resource{status: true})
	add(v1alpha1.GroupVersion, "Profile", "profiles", resource{})
	return out
}()

// apiServer is an API server in memory. It has what clients here depend on: versions that grow over all objects,
// conflicts, server-side apply with the definitions' lists, statuses apart, generations, deletion with grace and
// preconditions, owners, watches from a version, and compaction. It does not validate or fill in defaults, and knows no
// rights. [link] is the way to it.
type apiServer struct {
	scheme *runtime.Scheme
	merge  *merger

	mu       sync.Mutex
	version  uint64
	objects  map[*resource]map[types.NamespacedName]client.Object
	log      []change // of all kinds, the oldest first
	oldest   uint64   // watches from before this version are refused
	more     chan struct{}
	requests map[string]int // by verb and resource
}

// change is an entry of the log.
type change struct {
	version uint64
	of      *resource
	kind    string // ADDED, MODIFIED, DELETED
	before  client.Object
	object  client.Object // it does not change any more
}

func newAPIServer(scheme *runtime.Scheme) *apiServer {
	return &apiServer{scheme: scheme, merge: newMerger(scheme), more: make(chan struct{}),
		objects: make(map[*resource]map[types.NamespacedName]client.Object), requests: make(map[string]int)}
}

// call is a request, taken apart.
type call struct {
	of          *resource
	key         types.NamespacedName
	subresource string
	query       map[string][]string
}

// parse takes a path apart; false for one that is no object's.
func parse(path string) (c call, ok bool) {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	var gv schema.GroupVersion
	switch {
	case len(parts) > 2 && parts[0] == "api":
		gv, parts = schema.GroupVersion{Version: parts[1]}, parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		gv, parts = schema.GroupVersion{Group: parts[1], Version: parts[2]}, parts[3:]
	default:
		return c, false
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		c.key.Namespace, parts = parts[1], parts[2:]
	}
	at := slices.IndexFunc(resources, func(r *resource) bool {
		return r.gvk.GroupVersion() == gv && r.plural == parts[0]
	})
	if at < 0 {
		return c, false
	}
	c.of = resources[at]
	if len(parts) > 1 {
		c.key.Name = parts[1]
	}
	if len(parts) > 2 {
		c.subresource = parts[2]
	}
	return c, true
}

// serve answers a request that is no watch, with a status and an object.
func (s *apiServer) serve(r *http.Request) (int, any) {
	if out := discovery(r.URL.Path); out != nil {
		return http.StatusOK, out
	}
	c, ok := parse(r.URL.Path)
	if !ok {
		return http.StatusNotFound, status(apierrors.NewGenericServerResponse(http.StatusNotFound, r.Method,
			schema.GroupResource{}, r.URL.Path, "no such path", 0, true))
	}
	c.query = r.URL.Query()
	var body []byte
	if r.Body != nil {
		body, _ = io.ReadAll(r.Body)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	verb := r.Method
	if c.key.Name == "" && verb == http.MethodGet {
		verb = "LIST"
	}
	s.requests[verb+" "+c.of.plural]++
	var out any
	var err error
	code := http.StatusOK
	switch verb {
	case "LIST":
		return code, s.list(c)
	case http.MethodGet:
		out, err = s.get(c)
	case http.MethodPost:
		code = http.StatusCreated
		out, err = s.create(c, body)
	case http.MethodPut:
		out, err = s.update(c, body)
	case http.MethodPatch:
		if t := r.Header.Get("Content-Type"); t != string(types.ApplyYAMLPatchType) {
			err = apierrors.NewGenericServerResponse(http.StatusUnsupportedMediaType, verb, c.resource(), c.key.Name,
				t, 0, true)
			break
		}
		out, err = s.apply(c, body)
	case http.MethodDelete:
		out, err = s.remove(c, body)
	}
	if err != nil {
		x := status(err)
		return int(x.Code), x
	}
	return code, out
}

func (c *call) resource() schema.GroupResource {
	return schema.GroupResource{Group: c.of.gvk.Group, Resource: c.of.plural}
}

func status(err error) *metav1.Status {
	x, ok := err.(apierrors.APIStatus)
	if !ok {
		x = apierrors.NewBadRequest(err.Error())
	}
	out := x.Status()
	out.Kind, out.APIVersion = "Status", "v1"
	return &out
}

func (s *apiServer) get(c call) (client.Object, error) {
	if o := s.objects[c.of][c.key]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(c.resource(), c.key.Name)
}

// selected reports whether an object is among those that a list or a watch asks for.
func (c *call) selected(o client.Object) bool {
	if o == nil || c.key.Namespace != "" && o.GetNamespace() != c.key.Namespace {
		return false
	}
	selector, err := labels.Parse(first(c.query["labelSelector"]))
	return err == nil && selector.Matches(labels.Set(o.GetLabels()))
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

func (s *apiServer) list(c call) any {
	items := []any{}
	for _, o := range s.objects[c.of] {
		if c.selected(o) {
			items = append(items, o)
		}
	}
	return map[string]any{"kind": c.of.gvk.Kind + "List", "apiVersion": c.of.gvk.GroupVersion().String(),
		"metadata": map[string]any{"resourceVersion": strconv.FormatUint(s.version, 10)}, "items": items}
}

// decode reads an object of the call's kind.
func (s *apiServer) decode(c call, body []byte) (client.Object, error) {
	x, err := s.scheme.New(c.of.gvk)
	if err != nil {
		return nil, err
	}
	o := x.(client.Object)
	if err := json.Unmarshal(body, o); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	o.GetObjectKind().SetGroupVersionKind(c.of.gvk)
	return o, nil
}

func (s *apiServer) create(c call, body []byte) (client.Object, error) {
	o, err := s.decode(c, body)
	if err != nil || c.of.forgotten {
		return o, err
	}
	c.key.Name = o.GetName()
	if s.objects[c.of][c.key] != nil {
		return nil, apierrors.NewAlreadyExists(c.resource(), c.key.Name)
	}
	o.SetNamespace(c.key.Namespace)
	s.begin(c, o)
	s.put(c, nil, o)
	return o, nil
}

// begin gives a new object what the server gives it.
func (s *apiServer) begin(c call, o client.Object) {
	o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.version+1)))
	o.SetCreationTimestamp(metav1.NewTime(time.Now().Truncate(time.Second)))
	if c.of.status {
		o.SetGeneration(1)
	}
}

// put stores a new version of an object; nil removes it.
func (s *apiServer) put(c call, before, o client.Object) {
	s.version++
	e := change{version: s.version, of: c.of, before: before, object: o}
	if o == nil {
		e.kind = "DELETED"
		e.object = before.DeepCopyObject().(client.Object)
		delete(s.objects[c.of], c.key)
	} else {
		e.kind = "MODIFIED"
		if before == nil {
			e.kind = "ADDED"
		}
		if s.objects[c.of] == nil {
			s.objects[c.of] = make(map[types.NamespacedName]client.Object)
		}
		s.objects[c.of][c.key] = o
	}
	e.object.SetResourceVersion(strconv.FormatUint(s.version, 10))
	s.log = append(s.log, e)
	close(s.more)
	s.more = make(chan struct{})
}

func (s *apiServer) update(c call, body []byte) (client.Object, error) {
	before, err := s.get(c)
	if err != nil {
		return nil, err
	}
	o, err := s.decode(c, body)
	if err != nil {
		return nil, err
	}
	if v := o.GetResourceVersion(); v != "" && v != before.GetResourceVersion() {
		return nil, apierrors.NewConflict(c.resource(), c.key.Name, fmt.Errorf("it is at version %s",
			before.GetResourceVersion()))
	}
	if u := o.GetUID(); u != "" && u != before.GetUID() {
		return nil, apierrors.NewConflict(c.resource(), c.key.Name, fmt.Errorf("it is another one"))
	}
	return s.replace(c, before, o), nil
}

// replace has an object take the place of the version before, as far as the call may change it.
func (s *apiServer) replace(c call, before, o client.Object) client.Object {
	if c.of.status {
		if c.subresource == "status" {
			next := before.DeepCopyObject().(client.Object)
			field(next, "Status").Set(field(o, "Status"))
			next.SetManagedFields(o.GetManagedFields())
			o = next
		} else {
			field(o, "Status").Set(field(before.DeepCopyObject().(client.Object), "Status"))
		}
		o.SetGeneration(before.GetGeneration())
		if !reflect.DeepEqual(field(before, "Spec").Interface(), field(o, "Spec").Interface()) {
			o.SetGeneration(before.GetGeneration() + 1)
		}
	}
	o.SetNamespace(c.key.Namespace)
	o.SetUID(before.GetUID())
	o.SetCreationTimestamp(before.GetCreationTimestamp())
	o.SetDeletionTimestamp(before.GetDeletionTimestamp())
	o.SetResourceVersion(before.GetResourceVersion())
	if sameButManagers(before, o) {
		return before // nothing changes: no version, and no event
	}
	s.put(c, before, o)
	return o
}

func sameButManagers(a, b client.Object) bool {
	x, y := a.DeepCopyObject().(client.Object), b.DeepCopyObject().(client.Object)
	x.SetManagedFields(nil)
	y.SetManagedFields(nil)
	p, _ := json.Marshal(x)
	q, _ := json.Marshal(y)
	return string(p) == string(q)
}

func field(o client.Object, name string) reflect.Value {
	return reflect.ValueOf(o).Elem().FieldByName(name)
}

func (s *apiServer) apply(c call, body []byte) (client.Object, error) {
	before := s.objects[c.of][c.key]
	if before == nil && c.subresource != "" {
		return nil, apierrors.NewNotFound(c.resource(), c.key.Name)
	}
	o, err := s.merge.apply(c, before, body, first(c.query["fieldManager"]))
	if err != nil {
		return nil, err
	}
	if before == nil {
		o.SetNamespace(c.key.Namespace)
		s.begin(c, o)
		s.put(c, nil, o)
		return o, nil
	}
	return s.replace(c, before, o), nil
}

func (s *apiServer) remove(c call, body []byte) (any, error) {
	o, err := s.get(c)
	if err != nil {
		return nil, err
	}
	var options metav1.DeleteOptions
	if len(body) > 0 {
		if err := json.Unmarshal(body, &options); err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
	}
	if p := options.Preconditions; p != nil && (p.UID != nil && *p.UID != o.GetUID() ||
		p.ResourceVersion != nil && *p.ResourceVersion != o.GetResourceVersion()) {
		return nil, apierrors.NewConflict(c.resource(), c.key.Name, fmt.Errorf("it is another one"))
	}
	if p, ok := o.(*corev1.Pod); ok && p.Spec.NodeName != "" {
		grace := int64(30)
		if p.Spec.TerminationGracePeriodSeconds != nil {
			grace = *p.Spec.TerminationGracePeriodSeconds
		}
		if options.GracePeriodSeconds != nil {
			grace = *options.GracePeriodSeconds
		}
		if grace > 0 {
			return s.leave(c, p, grace), nil
		}
	}
	s.put(c, o, nil)
	return o, nil
}

// leave has a pod be deleted by its node, or at the end of its grace.
func (s *apiServer) leave(c call, p *corev1.Pod, grace int64) client.Object {
	at := metav1.NewTime(time.Now().Add(time.Duration(grace) * time.Second))
	if d := p.DeletionTimestamp; d != nil && !at.Before(d) {
		return p
	}
	next := p.DeepCopy()
	next.DeletionTimestamp, next.DeletionGracePeriodSeconds = &at, &grace
	s.put(c, p, next)
	return next
}

// collect removes objects whose owners are gone, as the garbage collector does.
func (s *apiServer) collect() {
	s.mu.Lock()
	defer s.mu.Unlock()
	there := make(map[types.UID]bool)
	for _, list := range s.objects {
		for _, o := range list {
			there[o.GetUID()] = true
		}
	}
	for of, list := range s.objects {
		for key, o := range list {
			owners := o.GetOwnerReferences()
			if len(owners) == 0 || slices.ContainsFunc(owners, func(x metav1.OwnerReference) bool {
				return there[x.UID]
			}) {
				continue
			}
			_, _ = s.remove(call{of: of, key: key}, nil)
		}
	}
}

// compact forgets what happened so far: a watch from before begins anew.
func (s *apiServer) compact() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.oldest, s.log = s.version, nil
}

// count is how many requests there were, but for watches.
func (s *apiServer) count() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, k := range s.requests {
		n += k
	}
	return n
}

// cells are the versions of the cells' configurations.
func (s *apiServer) cells() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := make(map[string]string)
	for key, o := range s.objects[kindOf("configmaps")] {
		if o.GetLabels()[v1alpha1.LabelCell] != "" {
			out[key.Name] = o.GetResourceVersion()
		}
	}
	return out
}

// discovery answers which kinds there are; nil for another path.
func discovery(path string) any {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case path == "/version":
		return map[string]any{"major": "1", "minor": "36", "gitVersion": "v1.36.3"}
	case path == "/api":
		return map[string]any{"kind": "APIVersions", "versions": []string{"v1"}}
	case path == "/apis":
		var groups []metav1.APIGroup
		for _, r := range resources {
			gv := r.gvk.GroupVersion()
			known := func(g metav1.APIGroup) bool { return g.Name == gv.Group }
			if gv.Group == "" || slices.ContainsFunc(groups, known) {
				continue
			}
			v := metav1.GroupVersionForDiscovery{GroupVersion: gv.String(), Version: gv.Version}
			groups = append(groups, metav1.APIGroup{Name: gv.Group, Versions: []metav1.GroupVersionForDiscovery{v},
				PreferredVersion: v})
		}
		return map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": groups}
	case len(parts) == 2 && parts[0] == "api", len(parts) == 3 && parts[0] == "apis":
		gv := strings.Join(parts[1:], "/")
		var list []metav1.APIResource
		for _, r := range resources {
			if r.gvk.GroupVersion().String() != gv {
				continue
			}
			x := metav1.APIResource{Name: r.plural, Namespaced: !r.everywhere, Kind: r.gvk.Kind,
				Verbs: metav1.Verbs{"get", "list", "watch", "create", "update", "patch", "delete"}}
			list = append(list, x)
			if r.status {
				x.Name += "/status"
				list = append(list, x)
			}
		}
		return map[string]any{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": gv, "resources": list}
	}
	return nil
}
