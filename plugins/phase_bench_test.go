package plugins_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/wire"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
)

// contest is one plugin with no opinion, as a phase calls it and as bare host calls
// on the same bytes.
type contest struct {
	rt    *phases.Runtime
	state *phases.State
	frame phases.Frame
	bare  *host.Module
	input []byte
}

func newContest(tb testing.TB, spec host.Spec, phase abi.Phase) *contest {
	tb.Helper()
	ctx := tb.Context()
	h, err := host.New(host.Config{CacheDir: cacheDir})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = h.Close(ctx) })
	set, err := plugins.Load(ctx, h, []plugins.Entry{{Module: spec}})
	if err != nil {
		tb.Fatal(err)
	}
	c := &contest{frame: phases.Frame{Phase: phase, Step: 1, Run: abi.RunIdentity{ThreadID: "t", RunID: "0198f3a2-0000-7000-8000-000000000000"}}}
	if c.rt, err = phases.New(phases.Config{Plugins: set.Plugins()}); err != nil {
		tb.Fatal(err)
	}
	c.state = c.rt.NewState(nil)
	spec.Name = "bare"
	if c.bare, err = h.Load(ctx, spec); err != nil {
		tb.Fatal(err)
	}
	// What the plugin gets is what the bare call gets.
	c.input, err = wire.MessagePack.Marshal(&abi.Event{ABI: abi.Version, Phase: phase, Run: c.frame.Run, Step: 1})
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

func (c *contest) fire(ctx context.Context) error {
	_, err := c.rt.Fire(ctx, c.state, c.frame)
	return err
}

func (c *contest) call(ctx context.Context) error {
	_, err := c.bare.Call(ctx, abi.ExportOnPhase, c.input)
	return err
}

// contestants are plugins with no opinion: one of a single instruction, and one that
// decodes the event with the SDK.
func contestants() map[string]struct {
	spec  host.Spec
	phase abi.Phase
} {
	return map[string]struct {
		spec  host.Spec
		phase abi.Phase
	}{"text": {small("noop"), abi.BeforeInference}, "go": {module("teller"), abi.RunStart}}
}

// TestContest: what is compared does the same, and does it.
func TestContest(t *testing.T) {
	t.Parallel()
	for name, c := range contestants() {
		o := newContest(t, c.spec, c.phase)
		if err := errors.Join(o.fire(t.Context()), o.call(t.Context())); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		for _, s := range o.rt.Stats() {
			if s.Calls != 1 || s.Failed+s.Skipped != 0 {
				t.Errorf("%s: %+v", name, s)
			}
		}
		out, err := o.bare.Call(t.Context(), abi.ExportOnPhase, o.input)
		var reply abi.Reply
		if len(out) > 0 {
			err = errors.Join(err, wire.MessagePack.Unmarshal(out, &reply))
		}
		if err != nil || reply.Gate != nil || len(reply.Updates)+len(reply.Effects)+len(reply.Actions) != 0 {
			t.Errorf("%s: %+v, %v", name, reply, err)
		}
	}
}

// BenchmarkPhase compares a phase at one plugin with no opinion with the bare host
// call. It is here since phases does not know Wasm. Both take turns in blocks within one
// run; the figures are medians of the blocks.
func BenchmarkPhase(b *testing.B) {
	for name, c := range contestants() {
		b.Run(name, func(b *testing.B) {
			const block = 100
			t := newContest(b, c.spec, c.phase)
			var bare, fired, ratio []float64
			ctx := b.Context()
			took := func(do func(context.Context) error) float64 {
				start := time.Now()
				for range block {
					if err := do(ctx); err != nil {
						b.Fatal(err)
					}
				}
				return float64(time.Since(start)) / block
			}
			took(t.call)
			took(t.fire)
			b.ReportAllocs()
			for b.Loop() {
				one, two := took(t.call), took(t.fire)
				bare, fired, ratio = append(bare, one), append(fired, two), append(ratio, two/one)
			}
			for unit, values := range map[string][]float64{"ns/bare": bare, "ns/fire": fired, "ratio": ratio} {
				slices.Sort(values)
				b.ReportMetric(values[len(values)/2], unit)
			}
			b.ReportMetric(0, "ns/op")
		})
	}
}
