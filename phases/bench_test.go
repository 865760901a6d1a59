package phases_test

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

type noop struct{ desc abi.Description }

func (n *noop) Describe() abi.Description { return n.desc }

func (*noop) OnPhase(ctx, *abi.Event) (*abi.Reply, error) { return nil, nil }

func BenchmarkFire(b *testing.B) {
	for _, n := range []int{0, 1, 10, 100} {
		b.Run(fmt.Sprintf("plugins=%d", n), func(b *testing.B) {
			var cfg phases.Config
			for i := range n {
				cfg.Plugins = append(cfg.Plugins, &noop{abi.Description{Name: fmt.Sprintf("p%d", i), Hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform, Messages: abi.ViewAll}}}})
			}
			r, err := phases.New(cfg)
			if err != nil {
				b.Fatal(err)
			}
			st, f, ctx := r.NewState(nil), step(100), b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Fire(ctx, st, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// A plugin with no opinion costs few allocations: its call, its context with a time limit, and the goroutines that make it.
//
//nolint:paralleltest // allocations are counted for the whole process
func TestFireAllocationsPerPlugin(t *testing.T) {
	cost := func(n int) float64 {
		var cfg phases.Config
		for i := range n {
			cfg.Plugins = append(cfg.Plugins, &noop{abi.Description{Name: fmt.Sprintf("p%d", i), Hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform, Messages: abi.ViewAll}}}})
		}
		r, err := phases.New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		st, f, ctx := r.NewState(nil), step(10), t.Context()
		return testing.AllocsPerRun(200, func() {
			if _, err := r.Fire(ctx, st, f); err != nil {
				t.Error(err)
			}
		})
	}
	const plugins, each = 200, 16
	one, many := cost(1), cost(plugins)
	if many > one+plugins*each {
		t.Errorf("%v allocations with 1 plugin, %v with 200", one, many)
	}
}

// BenchmarkCommit updates one key of a state that holds few keys, as plugins have them, and many.
func BenchmarkCommit(b *testing.B) {
	for _, n := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("keys=%d", n), func(b *testing.B) {
			bare := &bareScript{desc: plug("p", abi.Hook{Phase: abi.BeforeInference}, nil).Desc, reply: &abi.Reply{Updates: []abi.Update{{Key: "comm", Op: abi.OpAdd, Value: int64(1)}}}}
			r, err := phases.New(phases.Config{Plugins: []phases.Plugin{bare}})
			if err != nil {
				b.Fatal(err)
			}
			thread := make(map[string]any, n)
			for i := range n {
				thread[fmt.Sprintf("other/key%d", i)] = int64(i)
			}
			st, f, ctx := r.NewState(thread), step(1), b.Context()
			b.ReportAllocs()
			for b.Loop() {
				if _, err := r.Fire(ctx, st, f); err != nil {
					b.Fatal(err)
				}
			}
			if st.Revision() == 0 {
				b.Fatal("nothing was committed")
			}
		})
	}
}

// bareScript answers always the same and remembers nothing.
type bareScript struct {
	desc  abi.Description
	reply *abi.Reply
}

func (s *bareScript) Describe() abi.Description { return s.desc }

func (s *bareScript) OnPhase(ctx, *abi.Event) (*abi.Reply, error) { return s.reply, nil }

// BenchmarkDelta shows a long conversation to a hook that wants what is new.
func BenchmarkDelta(b *testing.B) {
	for _, n := range []int{10, 1_000} {
		b.Run(fmt.Sprintf("messages=%d", n), func(b *testing.B) {
			r, err := phases.New(phases.Config{Plugins: []phases.Plugin{&noop{abi.Description{
				Name: "p", Hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeObserve, Messages: abi.ViewDelta}},
			}}}})
			if err != nil {
				b.Fatal(err)
			}
			st, f, ctx := r.NewState(nil), step(n), b.Context()
			for b.Loop() {
				if _, err := r.Fire(ctx, st, f); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
