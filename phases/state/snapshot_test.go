package state_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/mortise-dev/mortise/phases/state"
)

// The store behaves as a plain map would, and each snapshot as the copy that was
// taken of it.
func TestStoreAgainstMap(t *testing.T) {
	t.Parallel()
	for seed := range uint64(20) {
		r := rand.New(rand.NewPCG(seed, 1))
		s := state.New()
		owners := 3 + r.IntN(300)
		for i := range owners {
			if err := s.Install(owner(i), &state.Key{Name: owner(i) + "/k"}); err != nil {
				t.Fatal(err)
			}
		}
		model := make(map[string]any)
		type pair struct {
			snapshot state.Snapshot
			model    map[string]any
		}
		var taken []pair
		for range 500 {
			i := r.IntN(owners)
			name := owner(i) + "/k"
			if r.IntN(4) == 0 {
				if err := s.Uninstall(owner(i)); err != nil {
					t.Fatal(err)
				}
				delete(model, name)
				if err := s.Install(owner(i), &state.Key{Name: name}); err != nil {
					t.Fatal(err)
				}
			} else {
				v := r.Int64()
				apply(t, s, set(name, v))
				model[name] = v
			}
			if r.IntN(10) == 0 {
				taken = append(taken, pair{s.Snapshot(), maps.Clone(model)})
			}
		}
		for _, p := range append(taken, pair{s.Snapshot(), model}) {
			got := maps.Collect(p.snapshot.All())
			if !reflect.DeepEqual(got, p.model) || p.snapshot.Len() != len(p.model) {
				t.Fatalf("seed %d: %d values, want %d", seed, len(got), len(p.model))
			}
			for name, v := range p.model {
				if got, ok := p.snapshot.Read(name); !ok || got != v {
					t.Fatalf("seed %d: %s is %v, want %v", seed, name, got, v)
				}
			}
		}
	}
}

func owner(i int) string { return fmt.Sprintf("o%d", i) }

// Iteration ends when the caller stops it.
func TestIterationStops(t *testing.T) {
	t.Parallel()
	n := 0
	for range filled(t, 100).Snapshot().All() {
		n++
		if n == 3 {
			break
		}
	}
	if n != 3 {
		t.Errorf("%d values", n)
	}
}

func filled(tb testing.TB, n int) *state.Store {
	tb.Helper()
	s := state.New()
	all := make([]*state.Key, n)
	us := make([]state.Update, n)
	for i := range n {
		all[i] = &state.Key{Name: owner(i) + "/k"}
		us[i] = set(owner(i)+"/k", i)
	}
	if err := s.Install("all", all...); err != nil {
		tb.Fatal(err)
	}
	if _, err := s.Apply(tb.Context(), batch(us...)); err != nil {
		tb.Fatal(err)
	}
	return s
}

func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{10, 1000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			s := filled(b, n)
			ctx, one := b.Context(), batch(add("o0/k", 1))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := s.Apply(ctx, one); err != nil {
					b.Fatal(err)
				}
				_ = s.Snapshot()
			}
		})
	}
}
