package plugins_test

import (
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/plugins"
)

// A hook that has to run before or after a plugin that is not loaded is no error, and the
// status says so.
func TestOrderNamesStrangers(t *testing.T) {
	t.Parallel()
	entry := func(name, order string) plugins.Entry {
		hooks := `,"hooks":[{"phase":"tool_gate","mode":"observe"` + order + `}]`
		return plugins.Entry{Module: host.Spec{Name: name, Wasm: describedAs(binaryOf(t, testdata("noop")), as(name, hooks))}}
	}
	set, err := load(t, newHost(t), entry("one", `,"before":["two","nobody"],"after":["audit"]`), entry("two", ""))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		`has to run before "nobody" at tool_gate, and no plugin of that name is loaded`,
		`has to run after "audit" at tool_gate, and no plugin of that name is loaded`,
	}
	if status := set.Status(); !reflect.DeepEqual(status[0].Notes, want) || status[1].Notes != nil {
		t.Errorf("status %+v", status)
	}
}
