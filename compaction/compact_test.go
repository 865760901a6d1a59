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
	"github.com/mortise-dev/mortise/compaction"
)

// anonymous is a list as a program has it that knows no ids.
func anonymous(list []abi.Message) []abi.Message {
	out := slices.Clone(list)
	for i := range out {
		out[i].ID = ""
	}
	return out
}

func roles(list []abi.Message) string {
	var out []string
	for i := range list {
		out = append(out, string(list[i].Role))
	}
	return strings.Join(out, " ")
}

// TestCompact: calls and their results, pins and the latest request stay together, the list that was
// passed stays as it is, and what the summary lacks is reported.
func TestCompact(t *testing.T) {
	t.Parallel()
	log := rounds(40)
	log[4] = pinned(log[4])
	log = append(log, assistant("last", "See https://example.com/one and https://example.com/two."), user("u", "And now?"))
	for name, list := range map[string][]abi.Message{"with ids": log, "without ids": anonymous(log)} {
		before := slices.Clone(list)
		var asked *abi.SummarizeRequest
		got, err := compaction.Compact(t.Context(), list, compaction.Options{
			Policy: tight(), Focus: "the build", ThreadID: "t", LiveTasks: []string{"bg_1"},
			Summarizer: scripted(func(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
				asked = r
				compaction.Note(ctx, "second", "the first one failed")
				return &abi.Summary{Text: "The build fails, see https://example.com/one."}, nil
			}),
		})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if asked.Focus != "the build" || asked.ThreadID != "t" || asked.LiveTasks[0] != "bg_1" || asked.BudgetTokens < 1 {
			t.Errorf("%s: the request is %+v", name, asked)
		}
		if got.From != 1 || got.To != len(list)-2 || got.Policy != "second" || got.Note != "the first one failed" {
			t.Errorf("%s: %d to %d by %s, %s", name, got.From, got.To, got.Policy, got.Note)
		}
		if want := "system system assistant tool user"; roles(got.Messages) != want {
			t.Errorf("%s: the result is %s, want %s", name, roles(got.Messages), want)
		}
		if got.PreTokens != compaction.Estimate(list) || got.PostTokens != compaction.Estimate(got.Messages) || got.PostTokens > 500 {
			t.Errorf("%s: %d to %d tokens", name, got.PreTokens, got.PostTokens)
		}
		if !slices.Contains(got.Lost, "https://example.com/two") || slices.Contains(got.Lost, "https://example.com/one") ||
			got.Quality.URLs != (compaction.Survival{Total: 2, Kept: 1}) || got.Quality.Pins != (compaction.Survival{Total: 1, Kept: 1}) {
			t.Errorf("%s: lost %q, quality %+v", name, got.Lost, got.Quality)
		}
		if fmt.Sprint(list) != fmt.Sprint(before) || got.Messages[2].ID != list[4].ID {
			t.Errorf("%s: the messages were changed", name)
		}
	}
}

// TestCompact_again: the result of a compaction is compacted again. Its summary is continued, with the
// files that were touched before, and there is one summary each time.
func TestCompact_again(t *testing.T) {
	t.Parallel()
	list := []abi.Message{system("s", "be brief"), user("u", "mend it")}
	for i := range 4 {
		call := abi.ToolCall{ID: fmt.Sprintf("c%d", i), Name: "write_file", Arguments: map[string]any{"path": fmt.Sprintf("/srv/f%d.go", i)}}
		list = append(list, abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{call}}, result("", call.ID, words(1_500)), assistant("", "Done."))
		var previous string
		got, err := compaction.Compact(t.Context(), list, compaction.Options{
			Policy: tight(), Summarizer: scripted(func(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
				if r.PreviousSummary != nil {
					previous = *r.PreviousSummary
				}
				return &abi.Summary{Text: fmt.Sprintf("summary %d", i)}, nil
			}),
		})
		if err != nil {
			t.Fatal(err)
		}
		list = got.Messages
		if i > 0 && previous != fmt.Sprintf("summary %d", i-1) {
			t.Errorf("the summary before is %q", previous)
		}
		if roles(list) != "system system user assistant" {
			t.Fatalf("after %d compactions the list is %s", i+1, roles(list))
		}
		for j := range i + 1 {
			if file := fmt.Sprintf("/srv/f%d.go", j); strings.Count(list[1].Text(), file) != 1 {
				t.Errorf("%s is not once in %q", file, list[1].Text())
			}
		}
	}
}

// TestCompact_refuses: what cannot be compacted is an error with the reason, and a summary that is not good enough comes
// with it.
func TestCompact_refuses(t *testing.T) {
	t.Parallel()
	never := scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) { panic("nobody asks") })
	for _, list := range [][]abi.Message{nil, {user("u", "hello")}, {system("s", words(5000))}, rounds(2)} {
		if _, err := compaction.Compact(t.Context(), list, compaction.Options{Policy: tight(), Summarizer: never}); !errors.Is(err, compaction.ErrTooShort) {
			t.Errorf("%d messages: %v", len(list), err)
		}
	}
	if _, err := compaction.Compact(t.Context(), rounds(40), compaction.Options{Policy: compaction.Policy{MinSurvival: 2}}); err == nil || !strings.Contains(err.Error(), "MinSurvival") {
		t.Error(err)
	}
	down := errors.New("down")
	for want, say := range map[string]scripted{
		"the summary is empty": says("  "),
		"down":                 func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) { return nil, down },
		"panicked: oh":         func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) { panic("oh") },
		"min_savings_ratio":    says(words(4000)),
		"claims to cover": func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
			return &abi.Summary{Text: "short", FromID: "else"}, nil
		},
		"timed out after 1ms": func(ctx context.Context, _ *abi.SummarizeRequest) (*abi.Summary, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		},
	} {
		o := compaction.Options{Policy: tight(), Summarizer: say, Timeout: time.Minute}
		if strings.HasPrefix(want, "timed") {
			o.Timeout = time.Millisecond
		}
		if got, err := compaction.Compact(t.Context(), rounds(40), o); got != nil || err == nil || !strings.Contains(err.Error(), want) || want == "down" && !errors.Is(err, down) {
			t.Errorf("%v, want %q", err, want)
		}
	}
	policy := tight()
	policy.Bars.URLs = 1
	list := append(rounds(40), assistant("a", "See https://example.com/one."), user("u", "And?"))
	_, err := compaction.Compact(t.Context(), list, compaction.Options{Policy: policy, Summarizer: says("Nothing.")})
	var refused *compaction.RefusedError
	if !errors.As(err, &refused) || !strings.Contains(refused.Reason, "bars.urls") || !slices.Contains(refused.Refused.Lost, "https://example.com/one") {
		t.Errorf("%v, %+v", err, refused)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	stopped := scripted(func(ctx context.Context, _ *abi.SummarizeRequest) (*abi.Summary, error) { return nil, ctx.Err() })
	if _, err := compaction.Compact(ctx, list, compaction.Options{Policy: tight(), Summarizer: stopped}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// FuzzCompact: from any list no message is lost but those of the range, and no result is without its call.
func FuzzCompact(f *testing.F) {
	f.Add([]byte("suctctactap"), int64(10))
	f.Add([]byte("sucttuacaPtau"), int64(0))
	f.Fuzz(func(t *testing.T, kinds []byte, keep int64) {
		list := someMessages(kinds[:min(len(kinds), 64)])
		policy := compaction.Policy{MinRangeTokens: 1, KeepRecentTokens: max(1, keep%2000), KeepRecentMessages: 1, SummaryTokens: 50, MinSavingsRatio: 0.01}
		got, err := compaction.Compact(t.Context(), list, compaction.Options{Policy: policy, Summarizer: says("short")})
		if err != nil {
			return
		}
		covered := map[string]bool{}
		for i := got.From; i <= got.To; i++ {
			covered[list[i].ID] = !list[i].Pinned
		}
		at, calls := 0, map[string]bool{}
		for _, m := range got.Messages {
			for _, c := range m.ToolCalls {
				calls[c.ID] = true
			}
			if m.Role == abi.RoleTool && !calls[m.ToolCallID] {
				t.Fatalf("the result %s has no call in %s", m.ToolCallID, ids(got.Messages))
			}
		}
		for _, m := range list {
			i := slices.IndexFunc(got.Messages, func(o abi.Message) bool { return o.ID == m.ID })
			if i < 0 && !covered[m.ID] || i >= 0 && i < at {
				t.Fatalf("message %s is at %d of %s, covered are %d to %d", m.ID, i, ids(got.Messages), got.From, got.To)
			}
			at = max(at, i)
		}
	})
}

// someMessages makes a list of letters: system, user, assistant, call, result of the latest call, and pinned ones in
// capitals.
func someMessages(kinds []byte) (list []abi.Message) {
	call := ""
	for i, k := range kinds {
		id := fmt.Sprintf("m%d", i)
		var m abi.Message
		switch k | 0x20 {
		case 's':
			m = system(id, "be brief")
		case 'u':
			m = user(id, words(60))
		case 'c':
			call = "call-" + id
			m = calls(id, call)
		case 't':
			if call == "" {
				continue
			}
			m = result(id, call, words(80))
		default:
			m = assistant(id, words(60))
		}
		m.Pinned = k >= 'A' && k <= 'Z'
		list = append(list, m)
	}
	return list
}

// TestCompact_besides: a list that leaves out what the summary names is read back, too.
func TestCompact_besides(t *testing.T) {
	t.Parallel()
	list := append([]abi.Message{system("s", "<conversation-summary>\na.go was changed.\n\n<modified-files besides=\"those named above\">\n/srv/b.go\n</modified-files>\n</conversation-summary>")}, rounds(40)...)
	previous := ""
	got, err := compaction.Compact(t.Context(), list, compaction.Options{
		Policy: tight(), Summarizer: scripted(func(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
			previous = *r.PreviousSummary
			return &abi.Summary{Text: "a.go was changed, and more."}, nil
		}),
	})
	if err != nil || previous != "a.go was changed." || !strings.Contains(fmt.Sprint(got.Messages), "/srv/b.go") {
		t.Errorf("%v, the summary before is %q", err, previous)
	}
}
