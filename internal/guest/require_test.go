package guest_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/guest"
)

// typed is a module that knows the types of its exports.
type typed struct {
	*module

	types map[string]string
}

func (m typed) ExportType(name string) string { return m.types[name] }

// TestGuest_Require: an export of another type is not called missing, nor taken.
func TestGuest_Require(t *testing.T) {
	t.Parallel()
	for is, want := range map[string]string{
		"() -> i32":    "",
		"(i32) -> i32": `guest: module "m": exports "on_phase" as (i32) -> i32, not () -> i32; give the function no parameters and an i32 as result`,
		"() -> ()":     `exports "on_phase" as () -> (), not () -> i32`,
		"a memory":     `exports "on_phase" as a memory, not () -> i32`,
		"":             `has no export "on_phase"`,
	} {
		m := typed{describes(t, abi.Description{Name: "a", Version: "1.0.0", ABI: abi.VersionRange{Min: 1, Max: 1}}), map[string]string{"on_phase": is}}
		if is == "() -> i32" || is == "() -> ()" { // what can be called
			m.exports["on_phase"] = answers(nil, nil)
		}
		g, err := guest.Open(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		err = g.Require("on_phase")
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", is, err)
		}
	}
}
