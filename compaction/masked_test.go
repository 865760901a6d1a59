package compaction_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// round is a call of read_file with its result.
func round(n int) []abi.Message {
	ask := abi.Message{ID: fmt.Sprintf("a%d", n), Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("Next.")}, ToolCalls: []abi.ToolCall{{
		ID: fmt.Sprintf("c%d", n), Name: "read_file", Arguments: map[string]any{"path": fmt.Sprintf("f%d.go", n), "note": strings.Repeat("n", 300)},
	}}}
	return []abi.Message{ask, result(fmt.Sprintf("r%d", n), fmt.Sprintf("c%d", n), strings.Repeat(fmt.Sprintf("line of file %d\n", n), 120))}
}

// masksOf answers with masks of results, or of the arguments of calls, that are not masked yet and may be.
func masksOf(r *abi.SummarizeRequest, pick func(i int) bool) []abi.Mask {
	had := map[string]bool{}
	for _, k := range r.Masking.Masked {
		had[k.MessageID] = true
	}
	var out []abi.Mask
	for i := range r.Messages {
		switch m := &r.Messages[i]; {
		case had[m.ID] || m.Pinned || !pick(i):
		case m.Role == abi.RoleTool:
			out = append(out, abi.Mask{MessageID: m.ID, Reason: abi.MaskSuperseded, By: r.Messages[len(r.Messages)-1].ID})
		case len(m.ToolCalls) > 0 && compaction.CheckMasks([]abi.Message{*m}, []abi.Mask{{MessageID: m.ID, CallID: m.ToolCalls[0].ID, Reason: abi.MaskFailedInput}}) == nil:
			out = append(out, abi.Mask{MessageID: m.ID, CallID: m.ToolCalls[0].ID, Reason: abi.MaskFailedInput})
		}
	}
	return out
}

// TestMasked: masks change what the model reads of single messages, by their numbers in the log, and nothing else.
func TestMasked(t *testing.T) {
	t.Parallel()
	log := []abi.Message{user("u", "Read the files.")}
	for i := range 2 {
		log = append(log, round(i)...)
	}
	view := compaction.Masked(log, []abi.Mask{
		{MessageID: "r0", Reason: abi.MaskSuperseded, By: "r1"}, {MessageID: "a1", CallID: "c1", Reason: abi.MaskFailedInput, By: "r1"}, {MessageID: "gone", Reason: abi.MaskDuplicate},
	})
	if got, want := view[2].Text(), "[masked: this was read again in m5. The tool recall shows the output, 1800 bytes, with id m3.]"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	args, _ := view[3].ToolCalls[0].Arguments.(map[string]any)
	if args["path"] != "f1.go" || args["note"] != "[masked: the call failed and was made again in m5. The tool recall shows it with id m4.]" {
		t.Errorf("arguments %v", args)
	}
	view[2].Content, view[3].ToolCalls = log[2].Content, log[3].ToolCalls
	if written(t, view) != written(t, log) {
		t.Error("something else changed")
	}
}

// TestCheckMasks: what cannot be masked refuses the answer.
func TestCheckMasks(t *testing.T) {
	t.Parallel()
	log := append([]abi.Message{user("u", "hi")}, round(0)...)
	log = append(log, round(1)...)
	log[4].Pinned = true
	log = append(log, round(2)...)
	log[5].Content = []abi.ContentBlock{{Type: abi.BlockThinking, Text: "hm", Signature: "s"}}
	ok := abi.Mask{MessageID: "r0", Reason: abi.MaskDuplicate}
	for want, masks := range map[string][]abi.Mask{
		"":                             {ok, {MessageID: "a1", CallID: "c1", Reason: abi.MaskFailedInput}},
		"not in the range":             {{MessageID: "x", Reason: abi.MaskDuplicate}},
		"twice":                        {ok, {MessageID: "r0", Reason: abi.MaskSuperseded}},
		"is pinned":                    {{MessageID: "r1", Reason: abi.MaskDuplicate}},
		"is not the output of a tool":  {{MessageID: "u", Reason: abi.MaskDuplicate}},
		`does not have`:                {{MessageID: "a1", CallID: "c0", Reason: abi.MaskFailedInput}},
		"whose thoughts are signed":    {{MessageID: "a2", CallID: "c2", Reason: abi.MaskFailedInput}},
		`for the unknown reason "old"`: {{MessageID: "r0", Reason: "old"}},
	} {
		err := compaction.CheckMasks(log, masks)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", want, err)
		}
	}
}

// TestMasks_properties mixes masks, summaries and undos as a log grows: pairs stay whole, no view grows, an estimate is that
// of the view, a restarted process sees the same, and each undo restores the view before, byte for byte.
func TestMasks_properties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testskip.Rounds(16, 2)) {
		r := rand.New(rand.NewPCG(seed, 9))
		d, store := newDesk(), compaction.NewMemory()
		masks := true
		writer := scripted(func(_ context.Context, q *abi.SummarizeRequest) (*abi.Summary, error) {
			if !masks {
				return &abi.Summary{Text: fmt.Sprintf("%d messages were here", len(q.Messages))}, nil
			}
			return &abi.Summary{Masks: masksOf(q, func(int) bool { return r.IntN(3) > 0 })}, nil
		})
		open := func() *compaction.Compactor {
			return d.at(t, writer, func(cfg *compaction.Config) {
				cfg.Store, cfg.Owner = store, "one"
				cfg.Policy = compaction.Policy{
					WindowTokens: 1 << 30, ReserveTokens: 1, ThresholdTokens: 20_000, KeepRecentTokens: 900, MinRangeTokens: 400, SummaryTokens: 500, MinSavingsRatio: .02, MinSurvival: -1,
				}
			})
		}
		c := open()
		log := []abi.Message{system("s", "Be brief."), user("u", "Read all files.")}
		type seen struct {
			log  []abi.Message
			view string
		}
		var before []seen
		swapped := 0
		for n := range 30 {
			log = append(log, round(n)...)
			if r.IntN(6) == 0 {
				log[len(log)-1].Pinned = true
			}
			if r.IntN(5) == 0 {
				log = append(log, user(fmt.Sprintf("u%d", n), "Go on."))
			}
			old := c.View(thread, log)
			switch r.IntN(5) {
			case 0, 1:
				masks = r.IntN(3) > 0
				had := c.Total(thread)
				d.pass(time.Hour)
				c.Request(thread, "")
				c.Consider(t.Context(), thread, log)
				consume(t, c, log, d.run())
				if c.Total(thread) == had {
					continue
				}
				before = append(before, seen{slices.Clone(log), written(t, old)})
				swapped++
				if m := newest(c); m.PostTokens >= m.PreTokens || m.PostTokens != compaction.Estimate(c.View(thread, log)) || m.PreTokens != compaction.Estimate(old) {
					t.Fatalf("seed %d: %d to %d tokens, the views have %d and %d", seed, m.PreTokens, m.PostTokens, compaction.Estimate(old), compaction.Estimate(c.View(thread, log)))
				}
			case 2:
				if len(before) == 0 || !c.Undo(thread) {
					continue
				}
				if was := before[len(before)-1]; written(t, c.View(thread, was.log)) != was.view {
					t.Fatalf("seed %d: undo does not restore the view", seed)
				}
				before = before[:len(before)-1]
			case 3:
				c = open()
			}
			view := c.View(thread, log)
			checkPairs(t, log, view)
			if m := c.Markers(thread); len(m) > 0 && written(t, compaction.View(log, &m[len(m)-1])) != written(t, view) {
				t.Fatalf("seed %d: the pure view differs", seed)
			}
		}
		if swapped == 0 {
			t.Errorf("seed %d: nothing was compacted", seed)
		}
	}
}

// checkPairs checks that each message of the log is in the view as it is, masked, or replaced, and each call with its result.
func checkPairs(t *testing.T, log, view []abi.Message) {
	t.Helper()
	open, roles := map[string]bool{}, map[string]abi.Role{}
	for i := range log {
		roles[log[i].ID] = log[i].Role
	}
	for i := range view {
		for _, c := range view[i].ToolCalls {
			open[c.ID] = true
		}
		if view[i].Role == abi.RoleTool && !open[view[i].ToolCallID] {
			t.Fatalf("the result %s stands without its call", view[i].ID)
		}
		delete(open, view[i].ToolCallID)
		if role, ok := roles[view[i].ID]; ok && role != view[i].Role {
			t.Fatalf("%s is %s", view[i].ID, view[i].Role)
		}
	}
	if len(open) > 0 {
		t.Fatalf("calls without results: %v", open)
	}
}
