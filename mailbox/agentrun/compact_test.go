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
	"github.com/mortise-dev/mortise/store/memstore"
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
			WindowTokens: 100_000, ThresholdTokens: 1_000, KeepRecentTokens: 1, KeepRecentMessages: 1, MinRangeTokens: 1_024, SummaryTokens: 500, BreakerFailures: -1,
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

// TestDeliverAtTheEndOfARun: what a run accepts and does not read any more is read by the next one of
// its thread, once, and after that there is no run to deliver to.
func TestDeliverAtTheEndOfARun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		end := &atEnd{entered: make(chan struct{}), leave: make(chan struct{})}
		model := &counter{}
		p := newProcess(t, memstore.New(), "one", model, &tools{}, end)
		sub := p.submit(t, request(t, "t", user("go")))
		<-end.entered
		must(t, p.run.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg_1", Result: "built"}))
		must(t, p.run.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeMessages, Messages: []abi.Message{user("one more thing")}}))
		close(end.leave)
		p.await(t, sub)
		for _, text := range []string{"next", "last"} {
			p.await(t, p.submit(t, request(t, "t", user(text))))
		}
		second, third := strings.Join(model.seen[1], "\n"), strings.Join(model.seen[2], "\n")
		for _, want := range []string{`"built"`, "one more thing"} {
			if strings.Count(second, want) != 1 || strings.Count(third, want) != 1 {
				t.Errorf("%s is not once in\n%s\n\n%s", want, second, third)
			}
		}
	})
}

// TestDeliverIsReadOnce: whenever a notice comes, at the start of a run, under way or at its end, it is
// either refused or read by a run of its thread, once.
func TestDeliverIsReadOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pause := memstore.New(), func(context.Context, abi.ToolCall) { time.Sleep(time.Millisecond) }
		p := newProcess(t, store, "one", &counter{rounds: 1}, &tools{during: pause})
		var wg sync.WaitGroup
		accepted, refused := map[string]bool{}, 0
		wg.Go(func() {
			for i := range 400 {
				id := fmt.Sprintf("bg_%03d", i)
				err := p.run.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCompleted, TaskID: id})
				if accepted[id] = err == nil; err != nil {
					refused++
				}
				if i%5 == 0 {
					time.Sleep(time.Millisecond)
				} else {
					runtime.Gosched()
				}
			}
		})
		for i := range 30 {
			p.await(t, p.submit(t, request(t, "t", user(fmt.Sprint("turn ", i)))))
			time.Sleep(time.Duration(i%3) * time.Millisecond)
		}
		wg.Wait()
		p.await(t, p.submit(t, request(t, "t", user("last"))))
		text := strings.Join(log(t, store, "t"), "\n")
		for id, read := range accepted {
			if n := strings.Count(text, `task_id="`+id+`"`); n != map[bool]int{true: 1}[read] {
				t.Errorf("%s was accepted: %v, and read %d times", id, read, n)
			}
		}
		if refused == 0 || refused == len(accepted) {
			t.Errorf("%d of %d were refused", refused, len(accepted))
		}
	})
}
