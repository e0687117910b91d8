package access

import (
	"fmt"
	"strings"
)

// Roles is a set of what a caller may do.
type Roles uint8

// The roles. None includes another.
const (
	Look       Roles = 1 << iota // read metadata, statistics, metrics and decisions
	Infer                        // send queries
	Deploy                       // load, unload, deploy and delete models
	Administer                   // change prices and settings
)

// All is every role.
const All = Look | Infer | Deploy | Administer

// RoleNames are the names of the roles in files, in their order.
var RoleNames = []string{"look", "infer", "deploy", "administer"}

// ParseRoles returns the roles of names.
func ParseRoles(names []string) (r Roles, err error) {
next:
	for _, n := range names {
		for k, known := range RoleNames {
			if n == known {
				r |= 1 << k
				continue next
			}
		}
		return 0, fmt.Errorf("%.40q is no role, want some of %s", n, strings.Join(RoleNames, ", "))
	}
	return r, nil
}

// String returns the names, separated by commas; "-" for none.
func (r Roles) String() string {
	var names []string
	for k, n := range RoleNames {
		if r&(1<<k) != 0 {
			names = append(names, n)
		}
	}
	if names == nil {
		return "-"
	}
	return strings.Join(names, ",")
}
