package agentruntest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store"
	threads "github.com/mortise-dev/mortise/thread"
)

// Kinds of cells that belong together in one batch.
const (
	imageCell      = "image"
	compactionCell = "compaction"
	entryCell      = "inbox-entry"
)

// TestCommits runs an agent that reads a notification, calls a tool and swaps in a compaction, and checks that what a step comes to is one
// batch: the checkpoint, the marker, and the notifications that are acknowledged. Then the store fails for good at each batch of the run in
// turn, before it is applied or after, and another process finishes the run.
func TestCommits(t *testing.T, open func(t *testing.T) (one, other store.Store)) {
	t.Helper()
	one, _ := open(t)
	whole := &failing{Store: one}
	p := startCommits(t, whole)
	p.finished(t)
	batches := whole.seen()
	if got := checkpoints(batches); got != commitsOfRun {
		t.Errorf("%d batches have a checkpoint, want %d of %d", got, commitsOfRun, len(batches))
	}
	together(t, batches)
	p.check(t, one, true)
	if t.Failed() {
		return
	}
	for at := range batches {
		for _, landed := range []bool{false, true} {
			t.Run(fmt.Sprintf("batch %d fails, landed %v", at+1, landed), func(t *testing.T) {
				t.Parallel()
				one, other := open(t)
				broken := &failing{Store: one, at: at + 1, landed: landed}
				startCommits(t, broken).failed(t, broken)
				together(t, broken.seen())
				acknowledged(t, other)
				rest := &failing{Store: other}
				p := startCommits(t, rest)
				p.finished(t)
				together(t, rest.seen())
				p.check(t, other, false)
			})
		}
	}
}

// commitsOfRun is how many checkpoints the run of [TestCommits] has without failures: one when it begins, one before its tool runs, one with
// the tool's result, one at the end of each of its two steps, and one at its own end.
const commitsOfRun = 6

// failing is a store that fails from its at-th batch of the thread on, if at is not 0.
type failing struct {
	store.Store

	at     int
	landed bool

	mu      sync.Mutex
	armed   bool
	down    chan struct{}
	count   int
	batches []store.Batch
}

var errDown = errors.New("the store is down")

func (f *failing) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.armed || b.Thread != thread {
		return f.Store.Apply(ctx, b)
	}
	f.count++
	if f.at > 0 && f.count >= f.at {
		if f.count == f.at && f.landed {
			if _, err := f.Store.Apply(ctx, b); err == nil {
				f.batches = append(f.batches, b)
			}
		}
		if f.count == f.at {
			close(f.down)
		}
		return 0, errDown
	}
	revision, err := f.Store.Apply(ctx, b)
	if err == nil {
		f.batches = append(f.batches, b)
	}
	return revision, err
}

func (f *failing) arm() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.armed, f.down = true, make(chan struct{})
}

func (f *failing) seen() []store.Batch {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.batches)
}

// marks reports whether a batch has a cell of that kind.
func marks(b *store.Batch, kind string) bool {
	return slices.ContainsFunc(b.Put, func(c store.Cell) bool { return c.Kind == kind })
}

func acknowledges(b *store.Batch) bool {
	return slices.ContainsFunc(b.Delete, func(r store.Range) bool { return r.Kind == entryCell })
}

func checkpoints(list []store.Batch) (n int) {
	for i := range list {
		if marks(&list[i], imageCell) {
			n++
		}
	}
	return n
}

// together checks that no marker is written and no notification acknowledged but with a checkpoint.
func together(t *testing.T, list []store.Batch) {
	t.Helper()
	total := 0
	for i := range list {
		b := &list[i]
		if acknowledges(b) && !marks(b, imageCell) {
			t.Errorf("batch %d acknowledges notifications without a checkpoint", i+1)
		}
		for _, c := range b.Put {
			if c.Kind != compactionCell {
				continue
			}
			var now struct{ State compaction.State }
			must(t, json.Unmarshal(c.Value, &now))
			if now.State.Total > total && !marks(b, imageCell) {
				t.Errorf("batch %d has a marker without a checkpoint", i+1)
			}
			total = now.State.Total
		}
	}
}

// acknowledged checks of a store that was left behind that the log has the notification if it is acknowledged, and not twice.
func acknowledged(t *testing.T, s store.Store) {
	t.Helper()
	read, err := s.Read(t.Context(), thread, store.Query{Cells: []store.Range{store.All(entryCell)}})
	must(t, err)
	waits := slices.ContainsFunc(read.Cells, func(c store.Cell) bool { return strings.Contains(string(c.Value), built) })
	log, err := threads.On(s).Messages(t.Context(), thread)
	if err != nil && !errors.Is(err, threads.ErrUnknown) {
		t.Fatal(err)
	}
	if n := times(log, built); n > 1 || n == 0 && !waits {
		t.Errorf("the notification waits: %v, and is %d times in the log", waits, n)
	}
}

// times is how many messages have a text.
func times(log []abi.Message, text string) (n int) {
	for i := range log {
		if strings.Contains(log[i].Text(), text) {
			n++
		}
	}
	return n
}

// built is what the notification has.
const built = "BUILT"

// office is a process with a mailbox, an inbox and a compactor on one store.
type office struct {
	box *mailbox.Mailbox
	out *inbox.Inbox
	sub mailbox.Submission
}

// startCommits begins a process, and submits the request of the run and its notification, each once whichever process does.
func startCommits(t *testing.T, s *failing) *office {
	t.Helper()
	ctx := t.Context()
	p := &office{}
	hold := patience
	if s.at > 0 {
		hold = lease / 4 // another process is to continue soon
	}
	var err error
	p.out, err = inbox.New(ctx, inbox.Config{Store: s})
	must(t, err)
	fired, err := phases.New(phases.Config{})
	must(t, err)
	var compactor *compaction.Compactor
	runs, err := agentrun.New(agentrun.Config{Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
		return agent.Config{
			Profile: agent.Profile{Model: caller{}, Tools: payer{}, Phases: fired}, Compactor: compactor, Inference: agent.Inference{Retry: llm.Retry{MaxRetries: -1}},
			Notifications: agent.Notifications{Take: func(ctx context.Context, thread string) (agent.Delivery, error) { return p.out.Take(ctx, thread) }},
		}, nil
	}})
	must(t, err)
	compactor, err = compaction.New(compaction.Config{
		Policy: compaction.Policy{
			WindowTokens: 100_000, ThresholdTokens: 1_000, KeepRecentTokens: 1, KeepRecentMessages: 1, MinRangeTokens: 500, SummaryTokens: 200, BreakerFailures: -1,
		},
		Summarizer: shortens{}, Spawn: p.spawn, Store: runs.Compactions(threads.On(s)),
	})
	must(t, err)
	p.box, err = mailbox.New(ctx, mailbox.Config{
		Store: s, Runtime: runs, Wake: agentrun.Wake,
		Lease: mailbox.Lease{Duration: hold, Renew: hold / 3, Skew: 50 * time.Millisecond}, Poll: 20 * time.Millisecond,
		Retry: mailbox.Retry{Delay: time.Millisecond, MaxDelay: 10 * time.Millisecond}, Retention: mailbox.Retention{Interval: -1},
		Waits: mailbox.Waits{Close: 50 * time.Millisecond},
	})
	must(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 3*lease)
		defer cancel()
		_ = p.box.Close(ctx) // its store may be down
		_ = p.out.Close(ctx)
	})
	var list []abi.Message
	for i := range 5 {
		role := []abi.Role{abi.RoleUser, abi.RoleAssistant}[i%2]
		list = append(list, abi.Message{ID: fmt.Sprint("m", i), Role: role, Content: []abi.ContentBlock{abi.Text(strings.Repeat(fmt.Sprint("word", i, " "), 400))}})
	}
	inputs, err := agentrun.Inputs(list...)
	must(t, err)
	p.sub, err = p.box.SubmitBackground(ctx, mailbox.Request{Thread: thread, Key: "the only one", Messages: inputs})
	must(t, err)
	if !p.sub.Repeated {
		must(t, p.out.Deliver(ctx, thread, abi.Notice{Kind: abi.NoticeCompleted, TaskID: "build", Result: built}))
	}
	s.arm()
	must(t, p.box.Start(ctx))
	return p
}

// spawn runs a compaction at once, and queues the notification of its end.
func (p *office) spawn(ctx context.Context, thread, id, _, _ string, body func(context.Context) error) error {
	if err := body(ctx); err != nil {
		return err
	}
	return p.out.Deliver(ctx, thread, abi.Notice{Kind: abi.NoticeCompleted, TaskID: id, Housekeeping: true})
}

// failed waits until the store is down, and closes the process as far as it can.
func (p *office) failed(t *testing.T, s *failing) {
	t.Helper()
	select {
	case <-s.down:
	case <-time.After(patience):
		t.Fatal("the store has not failed")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*lease)
	defer cancel()
	_ = p.box.Close(ctx)
}

func (p *office) finished(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	d, err := p.box.Await(ctx, p.sub.Dispatch)
	must(t, err)
	if d.Status != mailbox.Acked || d.RunStatus != mailbox.RunDone {
		t.Errorf("dispatch is %+v", d)
	}
	must(t, p.box.Close(ctx))
}

// check holds that the log has everything once, and each compaction that was swapped in an event.
func (p *office) check(t *testing.T, s store.Store, compacted bool) {
	t.Helper()
	view := threads.On(s)
	log, err := view.Messages(t.Context(), thread)
	must(t, err)
	ids := map[string]bool{}
	for i := range log {
		if ids[log[i].ID] {
			t.Errorf("message %q is twice in the log", log[i].ID)
		}
		ids[log[i].ID] = true
	}
	for _, text := range []string{built, "word0", "word4"} {
		if n := times(log, text); n != 1 {
			t.Errorf("%q is %d times in the log", text, n)
		}
	}
	if err := phases.CheckStructure(log); err != nil {
		t.Error(err)
	}
	state, _, err := view.State(t.Context(), thread)
	must(t, err)
	events, err := view.Events(t.Context(), thread)
	must(t, err)
	swapped := 0
	for i := range events {
		if events[i].Kind == compaction.EventSwapped {
			swapped++
		}
	}
	if state.Total != swapped || len(state.Markers) != state.Total || compacted && state.Total != 1 || state.Total > 1 {
		t.Errorf("%d compactions, %d markers, %d events", state.Total, len(state.Markers), swapped)
	}
	if n := p.out.Waiting(thread); n != 0 {
		t.Errorf("%d notifications wait", n)
	}
}

// caller is a model that calls a tool, and says done after its result.
type caller struct{}

func (caller) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	answer := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("done")}}
	if !slices.ContainsFunc(r.Messages, func(m abi.Message) bool { return m.Role == abi.RoleTool }) {
		answer = abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c1", Name: "pay"}}}
	}
	return &abi.Response{Message: answer}, nil
}

type payer struct{}

func (payer) Tools() []abi.Tool { return []abi.Tool{{Name: "pay", Kind: abi.ToolRead}} }

func (payer) CallTool(context.Context, abi.ToolCall) (abi.ToolResult, error) {
	return abi.ToolResult{Message: "paid"}, nil
}

// shortens is a summarizer.
type shortens struct{}

func (shortens) Summarize(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
	return &abi.Summary{Text: "a summary"}, nil
}
