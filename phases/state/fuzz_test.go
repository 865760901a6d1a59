package state_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// Whatever a thread brings along and whatever is done to it: nothing panics, nothing
// that was not written is lost, and what cannot be done changes nothing.
func FuzzRestore(f *testing.F) {
	f.Add([]byte(`{"p/kept": [1, {"a": null}], "gone/x": "y", "p/excl": 7, "_runtime/dead_letters": {}}`), "append", []byte(`["z"]`))
	f.Add([]byte(`{"p/comm": 1e308, "p/kept": {"a": 1}}`), "merge", []byte(`{"a": 2}`))
	f.Add([]byte(`{"p/comm": 9223372036854775807}`), "add", []byte(`1`))
	f.Add([]byte(`{"p/kept": [[], {}, "a"]}`), "remove", []byte(`[[], "a"]`))
	f.Fuzz(func(t *testing.T, values []byte, op string, operand []byte) {
		var thread map[string]any
		var with any
		if json.Unmarshal(values, &thread) != nil || json.Unmarshal(operand, &with) != nil {
			return
		}
		s := build(t)
		s.RestoreThread(thread)
		for name := range thread {
			k := s.Key(name)
			if _, ok := s.ExportThread()[name]; !ok && (k == nil || k.Scope == abi.ScopeThread) {
				t.Fatalf("%q is lost", name)
			}
		}
		before := s.Export()
		_, err := s.Apply(t.Context(), batch(set("p/retained", 1), state.Update{Key: "p/kept", Op: abi.Op(op), Value: with}))
		if err != nil && !reflect.DeepEqual(s.Export(), before) {
			t.Fatalf("%v, and the state was changed", err)
		}
		other := build(t)
		if err := other.Restore(s.Export(), false); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(other.Export(), s.Export()) {
			t.Fatalf("restored %v, want %v", other.Export(), s.Export())
		}
	})
}
