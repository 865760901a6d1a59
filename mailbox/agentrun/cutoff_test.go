package agentrun_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// halting is a model that stops in the middle of its first answer, until its context ends. Each answer is billed.
type halting struct{ asked int }

func (*halting) Infer(context.Context, llm.Request) (*abi.Response, error) { panic("it streams") }

func (m *halting) Stream(ctx context.Context, _ llm.Request, emit func(llm.Delta) bool) error {
	m.asked++
	emit(llm.Delta{Type: llm.DeltaUsage, Usage: &abi.Usage{PromptTokens: 10, CompletionTokens: 1}})
	emit(llm.Delta{Type: llm.DeltaText, Text: "half"})
	if m.asked == 1 {
		<-ctx.Done()
		return ctx.Err()
	}
	emit(llm.Delta{Type: llm.DeltaText, Text: " and whole"})
	return nil
}

// TestCutOff: of an answer that a shutdown cuts off nothing is kept, another process asks again, and both are counted. What a
// cancelled run has said is kept.
func TestCutOff(t *testing.T) {
	t.Parallel()
	for _, cancelled := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store, model := memstore.New(), &halting{}
			one := newProcess(t, store, "one", model, &tools{})
			sub := one.submit(t, request(t, "t", user("go")))
			synctest.Wait()
			want, wantUsage := "user: go|assistant: half and whole", int64(20)
			if cancelled {
				_, err := one.box.CancelRun(t.Context(), sub.Run)
				must(t, err)
				one.await(t, sub)
				want, wantUsage = "user: go|assistant: half", 10
			} else {
				ctx, cancel := context.WithCancel(t.Context())
				cancel()
				must(t, one.box.Close(ctx))
				two := newProcess(t, store, "two", model, &tools{})
				if d := two.await(t, sub); d.Status != mailbox.Acked || d.Response != "half and whole" {
					t.Errorf("dispatch is %+v", d)
				}
			}
			if got := strings.Join(log(t, store, "t"), "|"); got != want {
				t.Errorf("log is %q, want %q", got, want)
			}
			run, _, err := one.box.Run(t.Context(), sub.Run)
			must(t, err)
			var r agent.Record
			must(t, json.Unmarshal(run.Data, &r))
			if r.Usage.PromptTokens != wantUsage {
				t.Errorf("usage is %+v, want %d prompt tokens", r.Usage, wantUsage)
			}
		})
	}
}
