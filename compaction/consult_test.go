package compaction_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// TestVeto: a compaction that is vetoed does not start, gives its reservation back, and
// can start at the next step. The veto is a decision with its reason.
func TestVeto(t *testing.T) {
	t.Parallel()
	d := newDesk()
	c := d.at(t, says("a summary"), nil)
	log := filler()
	asked := 0
	veto := func(_ context.Context, offer *abi.Compaction) (string, string) {
		asked++
		if offer.FromID != "u0" || offer.ToID != "a2" || offer.Messages != 6 || offer.Policy != "scripted" || offer.ID == "" ||
			offer.TokensBefore < 1000 || offer.RangeTokens == 0 || offer.ThresholdTokens != 1000 || offer.WindowTokens != 100_000 {
			t.Errorf("asked about %+v", offer)
		}
		return "lost", "plugin deploy: a release is under way"
	}
	if c.ConsiderWith(t.Context(), thread, log, veto) || asked != 1 || c.Pending(thread) || d.started() != 0 {
		t.Fatalf("started after a veto, asked %d times", asked)
	}
	e := d.last(t)
	if e.Kind != compaction.EventAdmission || e.Decision.Allowed || e.Decision.Reason != abi.ReasonVetoed || e.Reason != "plugin deploy: a release is under way" {
		t.Errorf("decision %+v, reason %q", e.Decision, e.Reason)
	}
	var focus string
	c = d.at(t, scripted(func(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
		focus = r.Focus
		return &abi.Summary{Text: "a summary"}, nil
	}), nil)
	c.Request(thread, "the parser")
	for range 2 { // the second time it is already in flight
		c.ConsiderWith(t.Context(), thread, log, func(_ context.Context, offer *abi.Compaction) (string, string) {
			return "open tasks", ""
		})
	}
	consume(t, c, log, d.run())
	if focus != "the parser\nopen tasks" {
		t.Errorf("the summarizer's focus is %q", focus)
	}
}

// TestEnded: how each compaction ended can be asked for once, with what its summary
// does not hold.
func TestEnded(t *testing.T) {
	t.Parallel()
	log := filler()
	log[0] = user("u0", "look at https://example.com/a and https://example.com/b. "+strings.Repeat("filler ", 600))
	for name, c := range map[string]struct {
		summarizer compaction.Summarizer
		outcome    abi.CompactionOutcome
		reason     string
		lost       string
	}{
		"swapped": {says("saw https://example.com/a"), abi.CompactionSwapped, "", "[https://example.com/b]"},
		"refused": {says(words(4000)), abi.CompactionRefused, "min_savings_ratio", "[https://example.com/a https://example.com/b]"},
		"failed": {scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
			return nil, errors.New("no model today")
		}), abi.CompactionFailed, "no model today", "[]"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := newDesk()
			k := d.at(t, c.summarizer, nil)
			k.Consider(t.Context(), thread, log)
			if got := k.Ended(thread); len(got) != 0 {
				t.Errorf("ended before its end: %+v", got)
			}
			consume(t, k, log, d.run())
			got := k.Ended(thread)
			if len(got) != 1 || got[0].Outcome != c.outcome || !strings.Contains(got[0].Reason, c.reason) || (c.reason == "") != (got[0].Reason == "") || fmt.Sprint(got[0].Lost) != c.lost {
				t.Fatalf("ended %+v", got)
			}
			if swapped := c.outcome == abi.CompactionSwapped; swapped && (got[0].TokensAfter >= got[0].TokensBefore || *got[0].Survival != 0.5 || got[0].Summary == "") {
				t.Errorf("ended %+v", got[0])
			}
			if again := k.Ended(thread); len(again) != 0 {
				t.Errorf("reported twice: %+v", again)
			}
		})
	}
}

// TestEndedIsBounded: Ended need not be called.
func TestEndedIsBounded(t *testing.T) {
	t.Parallel()
	d := newDesk()
	c := d.at(t, scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) { return nil, errors.New("no") }), nil)
	log := filler()
	for range 20 {
		d.pass(time.Hour)
		c.Consider(t.Context(), thread, log)
		consume(t, c, log, d.run())
	}
	if got := c.Ended(thread); len(got) != 8 {
		t.Errorf("%d are kept", len(got))
	}
}

// keeper is a plugin that takes part in compactions.
type keeper struct {
	veto  bool
	pin   string
	seen  []string
	after []abi.Compaction
}

func (*keeper) Describe() abi.Description {
	return abi.Description{
		Name: "keeper", ABI: abi.VersionRange{Min: 1, Max: 1},
		Hooks: []abi.Hook{
			{Phase: abi.BeforeCompaction, Mode: abi.ModeGate, OnFailure: abi.FailIgnore},
			{Phase: abi.AfterCompaction, Mode: abi.ModeObserve},
		},
	}
}

func (k *keeper) OnPhase(_ context.Context, e *abi.Event) (*abi.Reply, error) {
	k.seen = append(k.seen, string(e.Phase))
	switch {
	case e.Phase == abi.AfterCompaction:
		k.after = append(k.after, *e.Compaction)
		return nil, nil
	case k.veto:
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectVetoCompaction, Detail: "not now"}}}, nil
	default:
		return &abi.Reply{Effects: []abi.Effect{
			{Type: abi.EffectPinMessage, MessageID: k.pin},
			{Type: abi.EffectFocusCompaction, Focus: "the pinned one"},
		}}, nil
	}
}

// talker is a model that answers each request in a word, and remembers what it was sent.
type talker struct{ asked [][]abi.Message }

func (m *talker) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	m.asked = append(m.asked, r.Messages)
	return &abi.Response{Message: abi.Message{Content: []abi.ContentBlock{abi.Text("ok")}}}, nil
}

// TestPluginsTakePart: in a run, a plugin vetoes a compaction, or pins what must stay and
// sets the focus, and learns how it ended.
func TestPluginsTakePart(t *testing.T) {
	t.Parallel()
	for _, veto := range []bool{true, false} {
		t.Run(fmt.Sprint("veto ", veto), func(t *testing.T) {
			t.Parallel()
			d, k, model := newDesk(), &keeper{veto: veto, pin: "u1"}, &talker{}
			focus := ""
			c := d.at(t, scripted(func(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
				focus = r.Focus
				return &abi.Summary{Text: "the summary"}, nil
			}), nil)
			rt, err := phases.New(phases.Config{Plugins: []phases.Plugin{k}})
			if err != nil {
				t.Fatal(err)
			}
			a, err := agent.New(agent.Config{Profile: agent.Profile{Model: model, Phases: rt}, Compactor: c})
			if err != nil {
				t.Fatal(err)
			}
			log := filler()
			if err := a.Append(t.Context(), thread, log[:len(log)-1]...); err != nil || d.started() != 0 {
				t.Fatalf("error %v, %d compactions began without asking the plugin", err, d.started())
			}
			for turn := range 2 {
				if _, err := a.Run(t.Context(), agent.Request{ThreadID: thread, Messages: []abi.Message{user("", "go on")}}); err != nil {
					t.Fatal(err)
				}
				if turn == 0 {
					for _, n := range d.run() {
						if err := a.Deliver(t.Context(), thread, n); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			last := model.asked[len(model.asked)-1]
			pinned := slices.ContainsFunc(last, func(m abi.Message) bool { return m.ID == "u1" && m.Pinned })
			summarized := slices.ContainsFunc(last, func(m abi.Message) bool { return strings.Contains(m.Text(), "the summary") })
			if veto {
				if d.started() != 0 || summarized || fmt.Sprint(k.seen) != "[before_compaction before_compaction]" {
					t.Errorf("%d began, events %v", d.started(), k.seen)
				}
				return
			}
			if !pinned || !summarized || focus != "the pinned one" || len(last) >= len(log) {
				t.Errorf("the model sees %q, focus %q", ids(last), focus)
			}
			if len(k.after) != 1 || k.after[0].Outcome != abi.CompactionSwapped || k.after[0].Summary != "the summary" {
				t.Errorf("after %+v", k.after)
			}
		})
	}
}
