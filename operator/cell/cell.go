// Package cell says how a cell's configuration lies in its ConfigMap: what the operator writes, and dispatchers and
// machine supply read.
package cell

import (
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/sluice-serving/sluice/operator/api/v1alpha1"
)

// The keys of the ConfigMap FLEET-cell-N.
const (
	// KeyConfig holds a complete configuration of sluice.
	KeyConfig = "sluice.yaml"
	// KeyProfile holds the latencies that the configuration names as profile.json, as `sluice profile` writes them.
	KeyProfile = "profile.json"
	// KeyMachines holds a Machines.
	KeyMachines = "machines.json"
)

// Where dispatchers find what the fleet's Secrets and ConfigMaps hold, whatever these call it.
const (
	// FileKeys has API keys, FileTokenKeys the keys of an issuer.
	FileKeys      = "/etc/sluice/access/keys"
	FileTokenKeys = "/etc/sluice/tokens/jwks.json"
	// FileCert and FileCertKey encrypt what clients send; FileClientCA has the authorities of clients.
	FileCert     = "/etc/sluice/tls/tls.crt"
	FileCertKey  = "/etc/sluice/tls/tls.key"
	FileClientCA = "/etc/sluice/client-ca/ca.crt"
)

// EntryKeys is the entry of a Secret with API keys.
const EntryKeys = "keys"

// Name is the name of the ConfigMap and of the Lease of a cell.
func Name(fleet string, cell int32) string { return fmt.Sprintf("%s-cell-%d", fleet, cell) }

// Manager is the field manager by which a cell's dispatcher writes its part of statuses.
func Manager(cell int) string { return fmt.Sprintf("sluice-dispatcher-cell-%d", cell) }

// Machines is what machine supply needs to know: how a machine of a type is made, and what is to be on it.
type Machines struct {
	Fleet string `json:"fleet"`
	Cell  int32  `json:"cell"`
	// UID of the cell's ConfigMap, which owns the pods: they go when the cell does. Dispatchers fill it in.
	UID types.UID `json:"uid,omitempty"`
	// Image of the workers whose machine type names none.
	Image string `json:"image,omitempty"`
	// PullPolicy and PullSecrets of the operator's own image hold for that of workers, too.
	PullPolicy  corev1.PullPolicy             `json:"pullPolicy,omitempty"`
	PullSecrets []corev1.LocalObjectReference `json:"pullSecrets,omitempty"`
	// MaxSurge and PendingTimeout are those of the fleet.
	MaxSurge       string          `json:"maxSurge,omitempty"`
	PendingTimeout metav1.Duration `json:"pendingTimeout"`
	// Types of machine that the cell may use, by name. Most in a type's spec is the cell's part of it. The worker N of
	// a type is called TYPE-N in the configuration, also where there is one.
	Types map[string]v1alpha1.MachineTypeSpec `json:"types"`
	// Models that the configuration names, by their name in it: ModelName.
	Models map[string]v1alpha1.Model `json:"models"`
	// Shares are the cell's parts of apps that several cells have, by name; they have all of the others.
	Shares Shares `json:"shares,omitempty"`
}

// Shares are a cell's parts of apps that several cells have, by name.
type Shares map[string]float64

// Of is the cell's part of one of its apps, above 0 and at most 1.
func (s Shares) Of(app string) float64 {
	if x := s[app]; x > 0 && x < 1 {
		return x
	}
	return 1
}

// SharesOf reads the shares of a cell from its files. One without machines has none.
func SharesOf(files Files) (Shares, error) {
	text, ok := files[KeyMachines]
	if !ok {
		return Shares{}, nil
	}
	m, err := Decode(text)
	if err != nil {
		return nil, err
	}
	return m.Shares, nil
}

// Own notes in a cell's files by which ConfigMap its pods are owned.
func (f Files) Own(m *corev1.ConfigMap) error {
	if f[KeyMachines] == "" {
		return nil
	}
	x, err := Decode(f[KeyMachines])
	if err != nil {
		return err
	}
	x.UID = m.UID
	f[KeyMachines], err = x.Encode()
	return err
}

// Encode writes it. Equal values give equal texts.
func (m *Machines) Encode() (string, error) {
	out, err := json.Marshal(m)
	if err != nil {
		return "", fmt.Errorf("%s: %w", KeyMachines, err)
	}
	return string(out), nil
}

// Decode reads what Encode has written.
func Decode(text string) (*Machines, error) {
	var m Machines
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return nil, fmt.Errorf("%s: %w", KeyMachines, err)
	}
	return &m, nil
}

// ModelName is the name of a variant's model on workers: unique in a fleet. An app of one stage has none.
func ModelName(app, stage, variant string) string {
	if stage == "" {
		return app + "." + variant
	}
	return app + "." + stage + "." + variant
}

// WorkerName is the name of machine n of a type in a cell's configuration.
func WorkerName(machineType string, n int) string { return fmt.Sprintf("%s-%d", machineType, n) }
