package agentrun_test

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/phases"
)

// talker is a model that says ack. It remembers how many messages it was sent, and of how many of
// the user's questions a summary is among them.
type talker struct {
	mu    sync.Mutex
	turns []string
}

func (s *talker) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	turn := fmt.Sprint(len(r.Messages))
	for _, m := range r.Messages {
		if strings.Contains(m.Text(), "SUMMARY") {
			turn += " with a summary"
		}
	}
	s.turns = append(s.turns, turn)
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("ack")}}, StopReason: abi.StopEndTurn}, nil
}

// late is a summarizer that takes that long.
type late time.Duration

func (d late) Summarize(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
	time.Sleep(time.Duration(d))
	return &abi.Summary{Text: "SUMMARY"}, nil
}

// TestCompactionBetweenRuns: the summary of a compaction that ends between two runs of its thread is
// in the next one's first request. Nothing is lost, nothing comes twice, and housekeeping wakes no thread.
func TestCompactionBetweenRuns(t *testing.T) {
	t.Parallel()
	for _, delay := range []time.Duration{0, time.Millisecond, time.Second} {
		t.Run(fmt.Sprintf("after %v", delay), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { compactionBetweenRuns(t, delay) })
		})
	}
}

func compactionBetweenRuns(t *testing.T, delay time.Duration) {
	t.Helper()
	var events []compaction.Event
	var compactor *compaction.Compactor
	model := &talker{}
	w := newWired(t, func(_ *wired, c *agent.Config) { c.Model, c.Compactor = model, compactor })
	var err error
	compactor, err = compaction.New(compaction.Config{
		Policy: compaction.Policy{
			WindowTokens: 100_000, ThresholdTokens: 1_000, KeepRecentTokens: 1, KeepRecentMessages: 1, MinRangeTokens: 1_024, SummaryTokens: 500, BreakerFailures: -1, MinSurvival: -1,
		},
		Summarizer: late(delay), Spawn: w.tasks.Housekeep, Observe: func(e compaction.Event) { events = append(events, e) },
	})
	must(t, err)
	for i := range 6 {
		sub, err := w.box.SubmitBackground(t.Context(), request(t, "t", user(fmt.Sprintf("question %d ", i)+strings.Repeat("filler ", 600))))
		must(t, err)
		d, err := w.box.Await(t.Context(), sub.Dispatch)
		must(t, err)
		if d.RunStatus != mailbox.RunDone {
			t.Errorf("turn %d is %+v", i+1, d)
		}
		time.Sleep(time.Minute)
	}
	if want := []string{"1", "3", "5", "4 with a summary"}; !slices.Equal(model.turns[:4], want) {
		t.Errorf("the model was sent %q, want %q first", model.turns, want)
	}
	counts := map[compaction.EventKind]int{}
	for _, e := range events {
		counts[e.Kind]++
	}
	delete(counts, compaction.EventAdmission)
	if counts[compaction.EventStarted] != 2 || counts[compaction.EventSwapped] != 2 || len(counts) != 2 {
		t.Errorf("compactions: %v", counts)
	}
	if s := w.tasks.Stats(); s.LostNotices != 0 || s.RefusedEvents != 0 || w.out.Waiting("t") != 0 {
		t.Errorf("stats are %+v, and %d notifications wait", s, w.out.Waiting("t"))
	}
	if list := w.dispatches(t); len(list) != 6 {
		t.Errorf("%d dispatches", len(list))
	}
	w.close(t)
}

// TestDeliverAtTheEndOfARun: what comes when a run reads nothing any more is read by the next one of its thread, once.
func TestDeliverAtTheEndOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		end := &atEnd{entered: make(chan struct{}), leave: make(chan struct{})}
		fired, err := phases.New(phases.Config{Plugins: []phases.Plugin{end}})
		must(t, err)
		model := &counter{}
		w := newWired(t, func(_ *wired, c *agent.Config) { c.Model, c.Phases = model, fired })
		sub, err := w.box.SubmitBackground(t.Context(), request(t, "t", user("go")))
		must(t, err)
		<-end.entered
		must(t, w.out.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg_1", Result: "built"}))
		must(t, w.out.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeMessages, Messages: []abi.Message{user("one more thing")}}))
		close(end.leave)
		_, err = w.box.Await(t.Context(), sub.Dispatch)
		must(t, err)
		for _, text := range []string{"next", "last"} {
			sub, err := w.box.SubmitBackground(t.Context(), request(t, "t", user(text)))
			must(t, err)
			_, err = w.box.Await(t.Context(), sub.Dispatch)
			must(t, err)
		}
		second, third := strings.Join(model.seen[1], "\n"), strings.Join(model.seen[2], "\n")
		for _, want := range []string{`"built"`, "one more thing"} {
			if strings.Count(second, want) != 1 || strings.Count(third, want) != 1 {
				t.Errorf("%s is not once in\n%s\n\n%s", want, second, third)
			}
		}
		w.close(t)
	})
}

// TestDeliverIsReadOnce: whenever a notice comes, at the start of a run, under way or at its end, it is read by a run of its thread, once.
func TestDeliverIsReadOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWired(t, func(_ *wired, c *agent.Config) {
			c.Model, c.Tools = &counter{rounds: 1}, &tools{during: func(context.Context, abi.ToolCall) { time.Sleep(time.Millisecond) }}
		})
		turn := func(text string) {
			sub, err := w.box.SubmitBackground(t.Context(), request(t, "t", user(text)))
			must(t, err)
			_, err = w.box.Await(t.Context(), sub.Dispatch)
			must(t, err)
		}
		turn("first")
		const notices = 400
		var wg sync.WaitGroup
		wg.Go(func() {
			for i := range notices {
				must(t, w.out.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCompleted, TaskID: fmt.Sprintf("bg_%03d", i)}))
				if i%5 == 0 {
					time.Sleep(time.Millisecond)
				} else {
					runtime.Gosched()
				}
			}
		})
		for i := range 30 {
			turn(fmt.Sprint("turn ", i))
			time.Sleep(time.Duration(i%3) * time.Millisecond)
		}
		wg.Wait()
		turn("last")
		for w.out.Waiting("t") > 0 {
			time.Sleep(time.Second)
		}
		text := strings.Join(log(t, w.store, "t"), "\n")
		for i := range notices {
			if n := strings.Count(text, fmt.Sprintf(`task_id="bg_%03d"`, i)); n != 1 {
				t.Errorf("notice %d was read %d times", i, n)
			}
		}
		w.close(t)
	})
}
