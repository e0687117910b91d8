package v1alpha1

import (
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// FleetSpec says what a fleet may use and how it decides.
//
// +kubebuilder:validation:XValidation:rule="!has(self.access) || !has(self.access.certificates) || (has(self.tls) &&
// has(self.tls.clientCA))",message="access.certificates needs tls.clientCA: nobody else checks the certificates"
type FleetSpec struct {
	// System that plans and routes, by name; `sluice systems` lists them. The default plans, shares machines between
	// apps and adapts, and needs no options.
	// +kubebuilder:default=sluice
	// +kubebuilder:validation:MinLength=1
	System string `json:"system,omitempty"`
	// Options are further settings of the system, as in docs/options.md. Default: none.
	Options map[string]string `json:"options,omitempty"`
	// Budget is the most that a plan may cost, in $/h, such as `12.50`. Default: not limited.
	// +kubebuilder:validation:XValidation:rule="quantity(string(self)).isGreaterThan(quantity('0'))",message="budget is
	// in $/h and must be more than 0"
	Budget *resource.Quantity `json:"budget,omitempty"`
	// Dispatchers is how many front ends share the apps. One is enough for some 10,000 queries/s; two or more survive
	// the loss of one. Each deals its apps onto machines of its own.
	// +kubebuilder:default=2
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=64
	Dispatchers int32 `json:"dispatchers,omitempty"`
	// DispatcherRate is how many queries/s one dispatcher is given at most. An app with more is dealt to several, each
	// with machines of its own; one whose stages keep state stays whole. Default: 5000.
	// +kubebuilder:default=5000
	// +kubebuilder:validation:Minimum=1
	DispatcherRate int32 `json:"dispatcherRate,omitempty"`
	// Replan is how often plans are made. Default: the system's own.
	Replan *metav1.Duration `json:"replan,omitempty"`
	// Image of dispatchers, and of workers whose machine type names none. Default: the operator's own image.
	Image string `json:"image,omitempty"`
	// TLS encrypts HTTP and gRPC, also between dispatchers. Default: both are plain, and a gateway or a mesh encrypts.
	TLS *FleetTLS `json:"tls,omitempty"`
	// Access says who may call. Default: everybody who reaches the fleet may look and infer.
	Access *FleetAccess `json:"access,omitempty"`
	// Tenants are whom callers belong to, with their shares and limits. Each cell holds callers to them on its own.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	Tenants []Tenant `json:"tenants,omitempty"`
	// Store is the persistent volume claim in which dispatchers keep what they have learned: latencies, idle times,
	// policies. Default: none, they learn anew after a restart.
	Store string `json:"store,omitempty"`
	// MaxSurge is how many machines of a type may be there beyond those of the plan while work moves: machines of the
	// new plan come up before those of the old one are given back. A number or a share such as `10%`.
	// +kubebuilder:default="25%"
	// +kubebuilder:validation:Pattern=`^([0-9]+|[0-9]+%)$`
	MaxSurge string `json:"maxSurge,omitempty"`
	// Linger is how long a rented machine is kept after its last instance: plans change their minds. Default: 30s.
	Linger *metav1.Duration `json:"linger,omitempty"`
	// PendingTimeout is how long a machine may stay pending before plans take it as not to be had; it is asked for
	// again after four times as long.
	// +kubebuilder:default="5m"
	PendingTimeout *metav1.Duration `json:"pendingTimeout,omitempty"`
}

// FleetTLS encrypts what clients send to a fleet. Changed Secrets and ConfigMaps count within a minute or two, without
// a restart; connections that stand are left alone.
//
// +kubebuilder:validation:XValidation:rule="!has(self.clientOptional) || !self.clientOptional ||
// has(self.clientCA)",message="clientOptional has no effect without clientCA"
type FleetTLS struct {
	// Secret is the name of a Secret of type kubernetes.io/tls: `tls.crt` has the certificate chain, `tls.key` its key,
	// as cert-manager and `kubectl create secret tls` write them. The certificate should name the fleet's Service, such
	// as `default.models.svc`.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Secret string `json:"secret"`
	// ClientCA has the authorities of clients, who must then show a certificate of one of them. Default: clients need
	// none.
	ClientCA *Authorities `json:"clientCA,omitempty"`
	// ClientOptional lets clients without a certificate connect all the same; they show a key or a token instead. With
	// clientCA.
	ClientOptional bool `json:"clientOptional,omitempty"`
}

// Authorities are certificates of authorities, as PEM in an entry of a Secret or a ConfigMap.
//
// +kubebuilder:validation:XValidation:rule="has(self.secret) != has(self.configMap)",message="authorities are in either
// a secret or a configMap"
type Authorities struct {
	// Secret is the name of the Secret that has them.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Secret string `json:"secret,omitempty"`
	// ConfigMap is the name of the ConfigMap that has them, such as a bundle of trust-manager.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	ConfigMap string `json:"configMap,omitempty"`
	// Key is the name of the entry.
	// +kubebuilder:default="ca.crt"
	// +kubebuilder:validation:Pattern=`^[-._a-zA-Z0-9]+$`
	// +kubebuilder:validation:MaxLength=253
	Key string `json:"key,omitempty"`
}

// FleetAccess says who may call: callers show a key, a certificate or a token, whichever of them there are.
//
// +kubebuilder:validation:XValidation:rule="has(self.keys) || has(self.certificates) || has(self.jwt)",message="access
// needs keys, certificates or jwt"
type FleetAccess struct {
	// Keys is the name of a Secret whose entry `keys` has API keys, hashed: the lines that `sluice key` writes. Callers
	// show theirs as `Authorization: Bearer KEY` or `X-API-Key`. Changes count within a minute or two.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	Keys string `json:"keys,omitempty"`
	// Certificates lists callers by the names in their certificates, which an authority of `tls.clientCA` has signed.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1000
	// +listType=map
	// +listMapKey=name
	Certificates []FleetCertificate `json:"certificates,omitempty"`
	// JWT takes signed tokens of an issuer, such as an OpenID provider. Callers show theirs as `Authorization: Bearer
	// TOKEN`.
	JWT *FleetJWT `json:"jwt,omitempty"`
	// Anonymous lists what callers may do who show nothing: `look`, `infer`. Default: nothing.
	// +listType=set
	Anonymous []AnonymousRole `json:"anonymous,omitempty"`
}

// FleetCertificate is a caller with a certificate.
type FleetCertificate struct {
	// Name is a common name, a DNS name or a URI (such as a SPIFFE ID) of the certificate.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	Name string `json:"name"`
	// Tenant is the name of one of the fleet's tenants. Default: none.
	// +kubebuilder:validation:MaxLength=100
	Tenant string `json:"tenant,omitempty"`
	// Roles are what the caller may do.
	// +kubebuilder:validation:MinItems=1
	// +listType=set
	Roles []Role `json:"roles"`
}

// Role is what a caller may do: `look` reads metadata and statistics, `infer` sends queries, `deploy` loads and unloads
// models, `administer` changes settings.
// +kubebuilder:validation:Enum=look;infer;deploy;administer
type Role string

// FleetJWT says which signed tokens are taken.
//
// +kubebuilder:validation:XValidation:rule="has(self.keyURL) != has(self.keySet)",message="the issuer's keys are at
// either keyURL or in a keySet"
type FleetJWT struct {
	// Issuer is the claim `iss` of the tokens.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	Issuer string `json:"issuer"`
	// Audience is what the claim `aud` must name.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=2000
	Audience string `json:"audience"`
	// KeyURL is where the issuer publishes its keys, a JSON Web Key Set, such as `https://id.example/jwks`. Dispatchers
	// fetch it at the start, every hour, and for unknown keys. A port other than 443 has to be among the chart's
	// `networkPolicies.issuerPorts`.
	// +kubebuilder:validation:Pattern=`^https://[^/]+`
	// +kubebuilder:validation:MaxLength=2000
	KeyURL string `json:"keyURL,omitempty"`
	// KeySet is the name of a ConfigMap whose entry `jwks.json` has the issuer's keys, instead of keyURL. Changes count
	// within a minute or two.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	KeySet string `json:"keySet,omitempty"`
	// TenantClaim is the claim with the caller's tenant. Default: none, callers have no tenant.
	// +kubebuilder:validation:MaxLength=253
	TenantClaim string `json:"tenantClaim,omitempty"`
	// RolesClaim is the claim with the caller's roles, as a list or as words: `infer` or `sluice:infer`. Others are not
	// looked at.
	// +kubebuilder:default=scope
	// +kubebuilder:validation:MaxLength=253
	RolesClaim string `json:"rolesClaim,omitempty"`
	// Roles are what callers may do whose token lacks the claim. Default: nothing.
	// +listType=set
	Roles []Role `json:"roles,omitempty"`
}

// AnonymousRole is what callers may do who show nothing.
// +kubebuilder:validation:Enum=look;infer
type AnonymousRole string

// Tenant is whom callers belong to: by the second word of their key's line, their certificate's entry or a claim of
// their token.
type Tenant struct {
	// Name by which these refer to it; `default` for callers without one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=100
	// +kubebuilder:validation:Pattern=`^[^\s#-][^\s]*$`
	Name string `json:"name"`
	// Weight is its share of machine time, relative to the other tenants, while that is short.
	// +kubebuilder:default=1
	// +kubebuilder:validation:Minimum=1
	Weight int32 `json:"weight,omitempty"`
	// Rate is the most queries/s that a cell takes of it. Default: not limited.
	// +kubebuilder:validation:Minimum=1
	Rate int32 `json:"rate,omitempty"`
	// Concurrency is how many of its queries a cell has under way at once. Default: not limited.
	// +kubebuilder:validation:Minimum=1
	Concurrency int32 `json:"concurrency,omitempty"`
}

// CellStatus is what one dispatcher's share of the fleet does.
type CellStatus struct {
	// Cell is its number, from 0.
	Cell int32 `json:"cell"`
	// Holder is the pod that serves it now. Empty while none does.
	Holder string `json:"holder,omitempty"`
	// Apps that it serves.
	Apps []string `json:"apps,omitempty"`
	// Machines that are ready, by machine type.
	Machines map[string]int32 `json:"machines,omitempty"`
	// Plan in force: when it was made and why, in a sentence.
	Plan string `json:"plan,omitempty"`
	// Planned is when it was made.
	Planned *metav1.Time `json:"planned,omitempty"`
}

// FleetStatus is what a fleet has and does.
type FleetStatus struct {
	// ObservedGeneration is the generation of the spec that this describes.
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`
	// Conditions: `Accepted` (false where the fleet cannot be used as it is), `Ready` (all cells are served),
	// `WithinBudget`, `MachinesAvailable`.
	// +listType=map
	// +listMapKey=type
	Conditions []metav1.Condition `json:"conditions,omitempty"`
	// Cells, by their number.
	// +listType=map
	// +listMapKey=cell
	Cells []CellStatus `json:"cells,omitempty"`
	// Apps is how many apps the fleet serves.
	Apps int32 `json:"apps,omitempty"`
	// Machines is how many machines are ready.
	Machines int32 `json:"machines,omitempty"`
	// CostPerHour is what they cost, in $/h.
	CostPerHour string `json:"costPerHour,omitempty"`
	// Endpoint is the name of the service that answers for all apps, as HOST.
	Endpoint string `json:"endpoint,omitempty"`
}

// Fleet is a set of machine types and of apps that share them, with the dispatchers that serve these.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=sluice
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Apps",type=integer,JSONPath=`.status.apps`
// +kubebuilder:printcolumn:name="Machines",type=integer,JSONPath=`.status.machines`
// +kubebuilder:printcolumn:name="$/h",type=string,JSONPath=`.status.costPerHour`
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type Fleet struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	// Spec says what the fleet may use; one that is left out has all defaults.
	// +kubebuilder:default={}
	Spec   FleetSpec   `json:"spec,omitempty"`
	Status FleetStatus `json:"status,omitempty"`
}

// FleetList is a list of fleets.
//
// +kubebuilder:object:root=true
type FleetList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Fleet `json:"items"`
}

func init() { SchemeBuilder.Register(&Fleet{}, &FleetList{}) }
