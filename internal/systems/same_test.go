package systems

import (
	"reflect"

	"github.com/sluice-serving/sluice/internal/algo/milp"
)

// noSolver stands for a solver that is never asked.
type noSolver struct{ milp.Solver }

// same reports whether two values are deeply equal, where functions with the same code are equal.
func same(a, b any) bool { return alike(reflect.ValueOf(a), reflect.ValueOf(b)) }

func alike(a, b reflect.Value) bool {
	if a.IsValid() != b.IsValid() || a.IsValid() && a.Type() != b.Type() {
		return false
	}
	switch a.Kind() {
	case reflect.Invalid:
		return true
	case reflect.Func:
		return a.Pointer() == b.Pointer()
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return a.IsNil() == b.IsNil()
		}
		return a.Kind() == reflect.Pointer && a.Pointer() == b.Pointer() || alike(a.Elem(), b.Elem())
	case reflect.Struct:
		for n := range a.NumField() {
			if !alike(a.Field(n), b.Field(n)) {
				return false
			}
		}
		return true
	case reflect.Slice, reflect.Array:
		if a.Len() != b.Len() {
			return false
		}
		for n := range a.Len() {
			if !alike(a.Index(n), b.Index(n)) {
				return false
			}
		}
		return true
	case reflect.Map:
		return a.Len() == b.Len() && a.Len() == 0
	}
	return a.Equal(b)
}
