package cells

import (
	"maps"
	"strconv"
	"strings"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
	"github.com/sluice-serving/sluice/operator/cell"
)

// Annotations of leases.
const (
	// AnnotationHTTP and AnnotationGRPC are where the holder answers, as HOST:PORT.
	AnnotationHTTP = "sluice.dev/http"
	AnnotationGRPC = "sluice.dev/grpc"
	// AnnotationKey is what other replicas know the holder by, where it serves TLS (peertls).
	AnnotationKey = "sluice.dev/key"
	// AnnotationNext is the replica that the holder wants to hand the cell to.
	AnnotationNext = "sluice.dev/next"
	// AnnotationPrepared is the replica that is ready to take the cell.
	AnnotationPrepared = "sluice.dev/prepared"
	// AnnotationLeaving is on the lease of a replica that ends.
	AnnotationLeaving = "sluice.dev/leaving"
)

// Holder is a replica, and where it answers.
type Holder struct {
	Identity   string // unique to a process
	HTTP, GRPC string // HOST:PORT
	Key        string // of its certificate among replicas; "" for one that serves no TLS
}

// LeaseName is the name of a cell's Lease and ConfigMap.
func LeaseName(fleet string, n int) string { return cell.Name(fleet, int32(n)) }

// memberName is the name of a replica's own Lease.
func memberName(fleet, identity string) string { return fleet + "-dispatcher-" + identity }

// IsMember reports whether a lease is a replica's own.
func IsMember(fleet string, l *coordinationv1.Lease) bool {
	_, isCell := cellOf(l)
	return !isCell && strings.HasPrefix(l.Name, memberName(fleet, ""))
}

// cellOf returns the cell that a lease is about; false for the lease of a replica.
func cellOf(l *coordinationv1.Lease) (int, bool) {
	n, err := strconv.Atoi(l.Labels[v1alpha1.LabelCell])
	return n, err == nil
}

// holderOf returns who holds a lease; none for nil.
func holderOf(l *coordinationv1.Lease) Holder {
	if l == nil || l.Spec.HolderIdentity == nil || *l.Spec.HolderIdentity == "" {
		return Holder{}
	}
	a := l.Annotations
	return Holder{*l.Spec.HolderIdentity, a[AnnotationHTTP], a[AnnotationGRPC], a[AnnotationKey]}
}

// newLease returns a lease that me holds.
func newLease(namespace, name, fleet string, me Holder, duration time.Duration, now time.Time) *coordinationv1.Lease {
	l := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{
		Namespace: namespace, Name: name, Labels: map[string]string{v1alpha1.LabelFleet: fleet},
	}}
	give(l, me, duration, now)
	return l
}

// give makes somebody the holder of a lease. now is for people who read it.
func give(l *coordinationv1.Lease, to Holder, duration time.Duration, now time.Time) {
	if l.Annotations == nil {
		l.Annotations = make(map[string]string)
	}
	delete(l.Annotations, AnnotationNext)
	delete(l.Annotations, AnnotationPrepared)
	set(l.Annotations, AnnotationHTTP, to.HTTP)
	set(l.Annotations, AnnotationGRPC, to.GRPC)
	set(l.Annotations, AnnotationKey, to.Key)
	at := metav1.NewMicroTime(now)
	seconds := int32(max(1, (duration+time.Second-1)/time.Second))
	if holderOf(l).Identity != to.Identity && l.ResourceVersion != "" {
		transitions := int32(1)
		if l.Spec.LeaseTransitions != nil {
			transitions += *l.Spec.LeaseTransitions
		}
		l.Spec.LeaseTransitions = &transitions
	}
	l.Spec.HolderIdentity, l.Spec.AcquireTime, l.Spec.RenewTime = &to.Identity, &at, &at
	l.Spec.LeaseDurationSeconds = &seconds
}

// set writes an annotation, or removes it where it is empty.
func set(to map[string]string, key, value string) {
	if value == "" {
		delete(to, key)
		return
	}
	to[key] = value
}

// renewed returns a copy of a lease that is renewed now, with these annotations beside those it has.
func renewed(l *coordinationv1.Lease, annotations map[string]string, now time.Time) *coordinationv1.Lease {
	out := l.DeepCopy()
	at := metav1.NewMicroTime(now)
	out.Spec.RenewTime = &at
	if out.Annotations == nil {
		out.Annotations = make(map[string]string)
	}
	for key, value := range maps.All(annotations) {
		set(out.Annotations, key, value)
	}
	return out
}
