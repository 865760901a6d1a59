package inbox_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
)

// summarizer is a function.
type summarizer func(*abi.SummarizeRequest) string

func (f summarizer) Summarize(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	return &abi.Summary{Text: f(r)}, nil
}

// TestLiveTasksAfterACompaction: when a compaction has taken the messages in which a
// task was started, the summary names the task, and the very next request lists it
// again, whatever the summarizer wrote.
func TestLiveTasksAfterACompaction(t *testing.T) {
	t.Parallel()
	const line = "[task t0] running, task: builds"
	for name, forgets := range map[string]bool{"summary_names_them": false, "summarizer_forgets_them": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				hold := make(chan struct{})
				step := 0
				f := newOffice(t, officeParts{
					model: &model{script: []any{calls("work"), calls("work"), "done"}},
					agent: agent.Config{Profile: agent.Profile{Tools: tools{"work": func(context.Context, abi.ToolCall) (string, error) {
						step++
						if step == 2 {
							close(hold)
							synctest.Wait()
						}
						return "ok", nil
					}}}},
					compact: func(f *office) agent.Compactor {
						c, err := compaction.New(compaction.Config{
							Policy: compaction.Policy{
								WindowTokens: 100_000, ThresholdTokens: 1000, KeepRecentTokens: 1, KeepRecentMessages: 1, MinRangeTokens: 1024, SummaryTokens: 500,
							},
							Summarizer: summarizer(func(r *abi.SummarizeRequest) string {
								<-hold
								if len(r.LiveTasks) != 1 || r.LiveTasks[0] != line {
									t.Errorf("the summarizer receives %q", r.LiveTasks)
								}
								if forgets {
									return "The summary."
								}
								return "The summary. " + strings.Join(r.LiveTasks, "; ")
							}),
							Spawn: f.Housekeep, LiveTasks: f.LiveTasks,
						})
						if err != nil {
							t.Fatal(err)
						}
						return c
					},
				})
				f.start(t, nil, make(chan struct{}))
				for range 3 {
					messages := []abi.Message{
						{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(strings.Repeat("filler ", 600))}},
						{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("ack")}},
					}
					if err := f.agent.Append(t.Context(), "a", messages...); err != nil {
						t.Fatal(err)
					}
				}
				r, err := f.agent.Run(t.Context(), asked("go"))
				if err != nil || r.StatusReason != "awaiting_tasks" {
					t.Fatalf("%+v, %v", r, err)
				}
				first, second, third := shown(f.model.asked[0]), shown(f.model.asked[1]), shown(f.model.asked[2])
				if strings.Count(first, line) != 1 || strings.Contains(second, line) {
					t.Errorf("before the compaction the model is shown %.300s and %.300s", first, second)
				}
				want := 2
				if forgets {
					want = 1
				}
				if !strings.Contains(third, "The summary.") || strings.Count(third, line) != want || !strings.Contains(third, "<background-tasks>") {
					t.Errorf("after the compaction the model is shown %.600s", third)
				}
				if f.out.Waiting("a") != 0 || len(f.List("a")) != 1 {
					t.Errorf("%d notices wait, tasks are %+v", f.out.Waiting("a"), f.List("a"))
				}
				f.CancelAll("a")
				f.close(t)
			})
		})
	}
}

// TestLiveTasksOfAManager are those of the thread that have not ended, without
// housekeeping.
func TestLiveTasksOfAManager(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newOffice(t, officeParts{model: &model{}})
		f.start(t, "over", nil)
		synctest.Wait()
		f.start(t, nil, make(chan struct{}))
		if _, err := f.Spawn(t.Context(), background.Spec{Thread: "b", Type: "task", Body: hanging}); err != nil {
			t.Fatal(err)
		}
		if got := f.LiveTasks("a"); len(got) != 1 || got[0] != "[task t1] running, task: builds" {
			t.Errorf("live tasks are %q", got)
		}
		f.close(t)
	})
}
