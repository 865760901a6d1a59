package compaction_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/phases"
)

type mute struct{}

func (mute) Summarize(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
	return nil, context.Canceled
}

func shrinker(t *testing.T, window int64) (*compaction.Compactor, *[]compaction.Event) {
	t.Helper()
	var told []compaction.Event
	c, err := compaction.New(compaction.Config{
		Policy: compaction.Policy{WindowTokens: window}, Summarizer: mute{}, Observe: func(e compaction.Event) { told = append(told, e) },
		Spawn: func(context.Context, string, string, string, string, func(context.Context) error) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return c, &told
}

// refusedView has n rounds with a call and a long output each; one message is pinned.
func refusedView(n int) []abi.Message {
	text := func(id string, role abi.Role, s string) abi.Message {
		return abi.Message{ID: id, Role: role, Content: []abi.ContentBlock{abi.Text(s)}}
	}
	var out []abi.Message
	for i := range n {
		call := abi.Message{ID: fmt.Sprint("a", i), Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: fmt.Sprint("c", i), Name: "bash"}}}
		result := text(fmt.Sprint("r", i), abi.RoleTool, strings.Repeat("a line of output\n", 100))
		result.ToolCallID, result.Pinned = fmt.Sprint("c", i), i == 1
		out = append(out, text(fmt.Sprint("u", i), abi.RoleUser, "go on"), call, result)
	}
	return append(out, text("last", abi.RoleUser, "and now?"))
}

// TestShrink: what a provider refused is cut to half, or to the window, with pairs and
// pins; the estimates learn that they were too small.
func TestShrink(t *testing.T) {
	t.Parallel()
	view := refusedView(30)
	size := compaction.Estimate(view)
	for name, window := range map[string]int64{"half of it": 1_000_000, "the window": size / 3} {
		c, told := shrinker(t, window)
		before := c.Tokens("t", view)
		cut, ok := c.Shrink("t", view)
		if after := compaction.Estimate(cut); !ok || after > size/2 || after > window {
			t.Errorf("%s: %v, %d of %d tokens", name, ok, after, size)
		}
		if err := phases.CheckStructure(cut); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		has := func(want abi.Message) bool {
			return slices.ContainsFunc(cut, func(m abi.Message) bool { return m.ID == want.ID && m.Text() == want.Text() })
		}
		if !has(view[5]) || !has(view[len(view)-1]) {
			t.Errorf("%s: the pinned message or the user's newest is gone", name)
		}
		if len(*told) != 1 || (*told)[0].Kind != compaction.EventFallback || (*told)[0].Thread != "t" || (*told)[0].PreTokens <= (*told)[0].PostTokens {
			t.Errorf("%s: told %+v", name, *told)
		}
		if grew := c.Tokens("t", view) > before; grew != (window > size) {
			t.Errorf("%s: %d tokens, and %d before", name, c.Tokens("t", view), before)
		}
	}
}

// TestShrinkNothing: where nothing can be left out, it reports so and sends no event.
func TestShrinkNothing(t *testing.T) {
	t.Parallel()
	c, told := shrinker(t, 100_000)
	for _, view := range [][]abi.Message{nil, refusedView(0)} {
		if cut, ok := c.Shrink("t", view); ok || len(cut) != len(view) || len(*told) != 0 {
			t.Errorf("%v, %d messages, told %+v", ok, len(cut), *told)
		}
	}
}
