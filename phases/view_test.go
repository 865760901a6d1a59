package phases_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
)

func TestViews(t *testing.T) {
	t.Parallel()
	tests := []struct {
		hook  abi.Hook
		total int
		want  string
	}{
		{abi.Hook{}, 3, ""},
		{abi.Hook{Messages: abi.ViewNone}, 3, ""},
		{abi.Hook{Messages: abi.ViewLast}, 3, "m3"},
		{abi.Hook{Messages: abi.ViewLast}, 0, ""},
		{abi.Hook{Messages: abi.ViewWindow, Window: 2}, 3, "m2 m3"},
		{abi.Hook{Messages: abi.ViewWindow, Window: 5}, 3, "m1 m2 m3"},
		{abi.Hook{Messages: abi.ViewAll}, 3, "m1 m2 m3"},
		{abi.Hook{Messages: abi.ViewDelta}, 3, "m1 m2 m3"},
	}
	for _, test := range tests {
		t.Run(fmt.Sprintf("%s of %d", test.hook.Messages, test.total), func(t *testing.T) {
			t.Parallel()
			test.hook.Phase = abi.BeforeInference
			p := plug("p", test.hook, silent)
			g := build(t, phases.Config{}, p)
			g.fire(t, step(test.total))
			e := p.Events()[0]
			if got := ids(e.Messages); got != test.want || e.MessagesTotal != test.total {
				t.Errorf("messages %q of %d, want %q", got, e.MessagesTotal, test.want)
			}
			if n := len(e.Messages); n > 0 && e.MessagesFrom != test.total-n {
				t.Errorf("messages begin at %d", e.MessagesFrom)
			}
			if got := g.only(t, "p").MessagesSent; got != len(e.Messages) {
				t.Errorf("recorded are %d messages", got)
			}
		})
	}
}

// A hook sees what belongs to the phase.
func TestEventFields(t *testing.T) {
	t.Parallel()
	now := time.UnixMilli(1_700_000_000_123)
	for _, phase := range append(abi.Phases(), abi.CompactionPhases()...) {
		p := plug("p", abi.Hook{Phase: phase}, silent)
		g := build(t, phases.Config{Now: func() time.Time { return now }}, p)
		f := phasestest.Frame(phase)
		f.End, f.RewrittenBy = &abi.RunEnding{Termination: abi.TerminationNatural}, []string{"a"}
		f.Run.DispatchID, f.Run.SessionID, f.Run.Mode, f.Run.Adapter = "d1", "s1", abi.RunScheduled, "a2a"
		g.fire(t, f)
		want := abi.Event{
			ABI: abi.Version, Phase: phase, Run: f.Run, Step: f.Step, MessagesTotal: len(f.Messages), Response: f.Response,
			Call: f.Call, Result: f.Result, ResultMessageID: f.ResultMessageID, Notices: f.Notices,
			NowMS: now.UnixMilli(), Compaction: f.Compaction, End: f.End, RewrittenBy: f.RewrittenBy,
		}
		if got := p.Events()[0]; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: event %+v, want %+v", phase, got, want)
		}
	}
}

// Each message comes once, however the list is changed in between.
func TestDelta(t *testing.T) {
	t.Parallel()
	steps := []struct{ list, want string }{
		{"m1 m2", "m1 m2"},
		{"m1 m2", ""},
		{"m1 m2 m3", "m3"},
		{"s1 m3 m4", "m4"},          // m1 and m2 were compacted
		{"s1 m3 m4 m5", "m5"},       // the summary does not come later either
		{"s2 m6 m7", "s2 m6 m7"},    // all that was seen is gone
		{"s2", ""},                  // an undo, or a cut
		{"s2 m7 m8", "m8"},          // and back
		{"m1 s3 m8 m9", "m9"},       // pinned messages stand before the summary
		{"m1 s3 m9", ""},            //
		{"m1 s3 m9 s4 ma", "s4 ma"}, //
		{"", ""},
		{"m1 ma mb", "mb"},
	}
	p := plug("p", abi.Hook{Phase: abi.BeforeInference, Messages: abi.ViewDelta}, silent)
	other := plug("q", abi.Hook{Phase: abi.RunEnd, Messages: abi.ViewDelta}, silent)
	g := build(t, phases.Config{}, p, other)
	for i, s := range steps {
		f := phases.Frame{Phase: abi.BeforeInference, Messages: parse(s.list)}
		g.fire(t, f)
		if got := ids(p.Events()[i].Messages); got != s.want {
			t.Errorf("step %d, %q: delta %q, want %q", i, s.list, got, s.want)
		}
	}
	// A plugin that comes late gets everything that is there.
	g.fire(t, phases.Frame{Phase: abi.RunEnd, Messages: parse("s9 mb mc")})
	if got := ids(other.Events()[0].Messages); got != "s9 mb mc" {
		t.Errorf("the other plugin got %q", got)
	}
}

func parse(list string) []abi.Message {
	var out []abi.Message
	var id string
	for _, c := range list + " " {
		if c != ' ' {
			id += string(c)
		} else if id != "" {
			out = append(out, user(id))
			id = ""
		}
	}
	return out
}

// A hook that failed did not take the messages in, so they come again.
func TestDeltaAfterFailure(t *testing.T) {
	t.Parallel()
	p := plug("p", abi.Hook{Phase: abi.BeforeInference, Messages: abi.ViewDelta}, phasestest.Sequence(
		silent, phasestest.Fail(errors.New("broken")), updates(abi.Update{Key: "undeclared"}), updates()))
	g := build(t, phases.Config{}, p)
	for n := 1; n <= 5; n++ {
		g.fire(t, step(n))
	}
	for i, want := range []string{"m1", "m2", "m2 m3", "m2 m3 m4", "m5"} {
		if got := ids(p.Events()[i].Messages); got != want {
			t.Errorf("event %d: delta %q, want %q", i, got, want)
		}
	}
}

// Phases of one plugin share what was sent; a hook that sees everything does not
// count.
func TestDeltaAcrossPhases(t *testing.T) {
	t.Parallel()
	p := plug("p", abi.Hook{Phase: abi.BeforeInference, Messages: abi.ViewDelta}, silent)
	p.Desc.Hooks = append(p.Desc.Hooks,
		abi.Hook{Phase: abi.StepEnd, Mode: abi.ModeObserve, Messages: abi.ViewDelta},
		abi.Hook{Phase: abi.StepStart, Mode: abi.ModeObserve, Messages: abi.ViewAll})
	g := build(t, phases.Config{}, p)
	for i, phase := range []abi.Phase{abi.StepStart, abi.BeforeInference, abi.StepEnd, abi.BeforeInference} {
		f := step(i + 1)
		f.Phase = phase
		g.fire(t, f)
	}
	for i, want := range []string{"m1", "m1 m2", "m3", "m4"} {
		if got := ids(p.Events()[i].Messages); got != want {
			t.Errorf("event %d: messages %q, want %q", i, got, want)
		}
	}
}

// A second call gets the same delta, and what was appended before it.
func TestDeltaOfSecondCall(t *testing.T) {
	t.Parallel()
	p := twice(plug("p", abi.Hook{Phase: abi.BeforeInference, Messages: abi.ViewDelta}, func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		if len(e.State) > 0 {
			return nil, nil
		}
		return &abi.Reply{
			Updates: []abi.Update{{Key: "excl", Op: abi.OpSet, Value: true}},
			Effects: []abi.Effect{{Type: abi.EffectAppendMessages, Messages: []abi.Message{{Role: abi.RoleUser, Content: text("hello")}}}},
		}, nil
	}))
	g := build(t, phases.Config{}, p)
	out := g.fire(t, step(2))
	if got := ids(p.Events()[2].Messages); got != "m1 m2 new1" {
		t.Errorf("the second call got %q", got)
	}
	f := step(0)
	f.Messages = out.Messages
	g.fire(t, f)
	for _, e := range p.Events()[3:] {
		if len(e.Messages) > 0 {
			t.Errorf("sent again: %q", ids(e.Messages))
		}
	}
}
