package state_test

import (
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

type (
	list   = []any
	fields = map[string]any
)

// build returns a store with four keys of one plugin.
func build(tb testing.TB) *state.Store {
	tb.Helper()
	s := state.New()
	if err := s.Install("p", keys()...); err != nil {
		tb.Fatal(err)
	}
	return s
}

func keys() []*state.Key {
	return []*state.Key{
		{Name: "p/excl"},
		{Name: "p/comm", Merge: abi.MergeCommutative},
		{Name: "p/kept", Scope: abi.ScopeThread},
		{Name: "p/retained", Native: state.Native{Retain: true}},
	}
}

func set(key string, v any) state.Update { return state.Update{Key: key, Op: abi.OpSet, Value: v} }

func add(key string, n any) state.Update { return state.Update{Key: key, Op: abi.OpAdd, Value: n} }

func batch(us ...state.Update) state.Batch { return state.Batch{Updates: us} }

func based(revision uint64, us ...state.Update) state.Batch {
	return state.Batch{Base: &revision, Updates: us}
}

func apply(tb testing.TB, s *state.Store, us ...state.Update) uint64 {
	tb.Helper()
	revision, err := s.Apply(tb.Context(), batch(us...))
	if err != nil {
		tb.Fatal(err)
	}
	return revision
}

func read(s *state.Store, key string) any {
	v, _ := s.Snapshot().Read(key)
	return v
}
