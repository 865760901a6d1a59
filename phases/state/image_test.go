package state_test

import (
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

func TestImageRoundTrip(t *testing.T) {
	t.Parallel()
	s := build(t)
	apply(t, s, set("p/excl", 1), add("p/comm", 0.5), set("p/kept", list{"a", fields{"b": []byte{1}}}))
	apply(t, s, set("p/retained", nil))
	other := build(t)
	apply(t, other, set("p/comm", "replaced"))
	if err := other.Restore(s.Export(), true); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(other.Export(), s.Export()) || other.Snapshot().Revision() != 2 {
		t.Errorf("restored %+v", other.Export())
	}
	if got := state.New().Export(); got.Revision != 0 || len(got.Values) != 0 || got.Values == nil {
		t.Errorf("an empty store exports %+v", got)
	}
	// Both continue by themselves.
	apply(t, other, add("p/excl", 1))
	if read(s, "p/excl") != int64(1) || read(other, "p/excl") != int64(2) {
		t.Error("two stores share state")
	}
}

// What no key can decode is kept and written back, unless the caller is strict.
func TestUnreadableValuesAreKept(t *testing.T) {
	t.Parallel()
	decode := state.Native{Decode: func(v any) (any, error) {
		switch v := v.(type) {
		case int64:
			return v, nil
		case string: // how an earlier version wrote it
			return int64(len(v)), nil
		case nil:
			panic("nothing")
		default:
			return nil, errors.New("not a count")
		}
	}}
	build := func() *state.Store {
		s := state.New()
		if err := s.Install("p", &state.Key{Name: "p/count", Scope: abi.ScopeThread, Native: decode}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	odd := struct{ n int }{7}
	tests := map[string]struct {
		values fields
		strict string
		shown  any
	}{
		"readable":      {fields{"p/count": 3}, "", int64(3)},
		"migrated":      {fields{"p/count": "abcd"}, "", int64(4)},
		"wrong type":    {fields{"p/count": list{"x"}}, "failed to decode key p/count: not a count", nil},
		"decoder fails": {fields{"p/count": nil}, "panicked: nothing", nil},
		"unknown key":   {fields{"gone/key": "theirs"}, "unknown key: gone/key", nil},
		"unknown odd":   {fields{"gone/odd": odd}, "unknown key: gone/odd", nil},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := build().Restore(state.Image{Values: test.values}, true)
			if (err == nil) != (test.strict == "") || err != nil && !strings.Contains(err.Error(), test.strict) {
				t.Errorf("strict: %v, want %q", err, test.strict)
			}
			for _, restore := range []func(*state.Store) error{
				func(s *state.Store) error { return s.Restore(state.Image{Revision: 5, Values: test.values}, false) },
				func(s *state.Store) error { s.RestoreThread(test.values); return nil },
			} {
				s := build()
				if err := restore(s); err != nil {
					t.Fatal(err)
				}
				if v, _ := s.Snapshot().Load(s.Key("p/count")); v != test.shown {
					t.Errorf("shown is %v, want %v", v, test.shown)
				}
				want := test.values
				if test.shown != nil {
					want = fields{"p/count": test.shown}
				}
				if got := s.ExportThread(); !reflect.DeepEqual(got, want) {
					t.Errorf("written back is %v, want %v", got, want)
				}
			}
		})
	}
}

// A run that goes to an agent without a plugin, and comes back, finds the plugin's
// thread state again.
func TestKeptValueComesBack(t *testing.T) {
	t.Parallel()
	first := build(t)
	apply(t, first, set("p/kept", "mine"), set("p/excl", "of the run"))
	without := state.New()
	without.RestoreThread(first.ExportThread())
	if err := without.Install("p", keys()...); err != nil {
		t.Fatal(err)
	}
	if v, _ := without.Snapshot().Load(without.Key("p/kept")); v != "mine" {
		t.Errorf("kept is %v", v)
	}
	// Of another agent the key is of run scope: what the thread had is not shown.
	narrow := state.New()
	narrow.RestoreThread(first.ExportThread())
	if err := narrow.Install("p", &state.Key{Name: "p/kept"}); err != nil {
		t.Fatal(err)
	}
	if _, ok := narrow.Snapshot().Load(narrow.Key("p/kept")); ok {
		t.Error("a run-scoped key shows what another run kept")
	}
}

func TestRestoreThread(t *testing.T) {
	t.Parallel()
	s := build(t)
	apply(t, s, set("p/excl", "mine"))
	s.RestoreThread(fields{"p/excl": "of the earlier run", "p/kept": 4})
	if read(s, "p/excl") != "mine" || read(s, "p/kept") != int64(4) || s.Snapshot().Revision() != 1 {
		t.Errorf("the store holds %+v", s.Export())
	}
}

func TestTransientValuesStay(t *testing.T) {
	t.Parallel()
	s := state.New()
	if err := s.Install("p", &state.Key{Name: "p/now", Scope: abi.ScopeThread, Native: state.Native{Transient: true}}); err != nil {
		t.Fatal(err)
	}
	apply(t, s, set("p/now", 1))
	if len(s.Export().Values)+len(s.ExportThread()) != 0 {
		t.Errorf("exported %v", s.Export())
	}
}
