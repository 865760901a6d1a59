package compaction_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const thread = "thread-1"

func message(id string, role abi.Role, text string) abi.Message {
	return abi.Message{ID: id, Role: role, Content: []abi.ContentBlock{abi.Text(text)}}
}

func system(id, text string) abi.Message    { return message(id, abi.RoleSystem, text) }
func user(id, text string) abi.Message      { return message(id, abi.RoleUser, text) }
func assistant(id, text string) abi.Message { return message(id, abi.RoleAssistant, text) }

// calls is an assistant message that asks for calls of these ids.
func calls(id string, ids ...string) abi.Message {
	m := message(id, abi.RoleAssistant, "")
	for _, c := range ids {
		m.ToolCalls = append(m.ToolCalls, abi.ToolCall{ID: c, Name: "shell", Arguments: map[string]any{"cmd": "go test"}})
	}
	return m
}

func result(id, call, text string) abi.Message {
	m := message(id, abi.RoleTool, text)
	m.ToolCallID = call
	return m
}

func pinned(m abi.Message) abi.Message {
	m.Pinned = true
	return m
}

// words is text of about n tokens.
func words(n int) string { return strings.TrimSpace(strings.Repeat("some word ", n/2+1)) }

// filler is the conversation of seed 000: three large rounds and a short question.
func filler() []abi.Message {
	var log []abi.Message
	for i := range 3 {
		log = append(log,
			user(fmt.Sprintf("u%d", i), strings.Repeat("filler ", 600)), assistant(fmt.Sprintf("a%d", i), "ack"))
	}
	return append(log, user("u3", "recent"))
}

// rounds is a system message, a question, and n rounds of a call and its result,
// each of about 60 tokens.
func rounds(n int) []abi.Message {
	log := []abi.Message{system("s", "be brief"), user("q", "mend the build in internal/cli/run.go")}
	for i := range n {
		call := fmt.Sprintf("c%d", i)
		log = append(log, calls("m"+call, call), result("r"+call, call, fmt.Sprintf("ok %d ", i)+words(40)))
	}
	return log
}

func ids(messages []abi.Message) []string {
	out := make([]string, len(messages))
	for i := range messages {
		out[i] = messages[i].ID
	}
	return out
}

// tight keeps one message and summarizes nearly everything else. Nothing else writes in
// the summarizer's place.
func tight() compaction.Policy {
	return compaction.Policy{
		WindowTokens: 100_000, ThresholdTokens: 1_000, KeepRecentTokens: 1, KeepRecentMessages: 1,
		MinRangeTokens: 1_024, SummaryTokens: 500, BreakerFailures: -1, MinSurvival: -1,
	}
}

// scripted is a summarizer that a test writes.
type scripted func(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error)

func (f scripted) Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	return f(ctx, r)
}

// says is a summarizer that always says the same.
func says(text string) scripted {
	return func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
		return &abi.Summary{Text: text}, nil
	}
}

// desk is a Spawn whose tasks run when the test says so, and the events and the
// clock of a compactor.
type desk struct {
	mu     sync.Mutex
	now    time.Time
	n      int
	jobs   []job
	events []compaction.Event
}

type job struct {
	task string
	ctx  context.Context
	body func(context.Context) error
}

func newDesk() *desk { return &desk{now: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)} }

func (d *desk) spawn(ctx context.Context, _, id, _, _ string, body func(context.Context) error) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.n++
	d.jobs = append(d.jobs, job{task: id, ctx: ctx, body: body})
	return nil
}

// run runs the tasks that wait, and returns the notifications of their ends.
func (d *desk) run() []abi.Notice {
	d.mu.Lock()
	jobs := d.jobs
	d.jobs = nil
	d.mu.Unlock()
	var out []abi.Notice
	for _, j := range jobs {
		err := j.body(j.ctx)
		end := abi.Notice{Kind: abi.NoticeCompleted, TaskID: j.task, Housekeeping: true}
		if err != nil {
			end.Kind, end.Error = abi.NoticeFailed, err.Error()
		}
		out = append(out, end)
	}
	return out
}

func (d *desk) started() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.n
}

func (d *desk) observe(e compaction.Event) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.events = append(d.events, e)
}

func (d *desk) clock() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.now
}

func (d *desk) pass(by time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.now = d.now.Add(by)
}

// kinds lists what was observed, in order.
func (d *desk) kinds() []compaction.EventKind {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]compaction.EventKind, len(d.events))
	for i, e := range d.events {
		out[i] = e.Kind
	}
	return out
}

// last is the newest event.
func (d *desk) last(t *testing.T) compaction.Event {
	t.Helper()
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.events) == 0 {
		t.Fatal("no event was observed")
	}
	return d.events[len(d.events)-1]
}

func newCompactor(tb testing.TB, cfg compaction.Config) *compaction.Compactor {
	tb.Helper()
	c, err := compaction.New(cfg)
	if err != nil {
		tb.Fatalf("new: %v", err)
	}
	return c
}

// at makes a compactor on a desk.
func (d *desk) at(tb testing.TB, s compaction.Summarizer, change func(*compaction.Config)) *compaction.Compactor {
	tb.Helper()
	cfg := compaction.Config{Policy: tight(), Summarizer: s, Spawn: d.spawn, Observe: d.observe, Now: d.clock, PolicyName: "scripted"}
	if change != nil {
		change(&cfg)
	}
	return newCompactor(tb, cfg)
}

// consume hands notices to the compactor, all of which must be its own.
func consume(t *testing.T, c *compaction.Compactor, log []abi.Message, notices []abi.Notice) {
	t.Helper()
	for _, n := range notices {
		if !c.Consume(thread, log, n) {
			t.Fatalf("the %s notification of %s was not consumed", n.Kind, n.TaskID)
		}
	}
}
