package agentruntest

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
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

// maxTurns is how many runs a process makes in [TestRetention] at most.
const maxTurns = 30

// TestRetention has a thread compacted several times, drops the content of its old messages, and checks that the model sees the same, that
// the log keeps its places, that the compaction cannot be undone, that the store is smaller, and that another process continues the thread.
func TestRetention(t *testing.T, open func(t *testing.T) (one, other store.Store)) {
	t.Helper()
	one, other := open(t)
	p := startRetention(t, one)
	p.turns(t, "turn", 2)
	log, before := p.log(t), stored(t, one)
	view, ledger := p.compactor.View(thread, log), p.ledger(t)
	must(t, p.box.GC(t.Context()))
	p.close(t)

	p = startRetention(t, other)
	rest := p.log(t)
	state, _, err := p.threads.State(t.Context(), thread)
	must(t, err)
	if state.Total < 2 || state.Dropped < len(log)/2 {
		t.Fatalf("%d compactions, %d messages were dropped", state.Total, state.Dropped)
	}
	if got := p.compactor.View(thread, rest); !reflect.DeepEqual(got, view) {
		t.Errorf("the model sees %q, want %q", textsOf(got), textsOf(view))
	}
	if n := stored(t, other); n > before/2 {
		t.Errorf("the thread has %d bytes of %d", n, before)
	}
	if p.undoAll() {
		t.Error("the view is the log again, and the log is not whole")
	}
	p.pages(t, log, rest)
	if now := p.ledger(t); now.Messages != ledger.Messages || !reflect.DeepEqual(now.State, ledger.State) {
		t.Error("the ledger has changed")
	}
	p.turns(t, "later", state.Total+1)
	p.continued(t, state)
}

// clerk is a process with a mailbox and a compactor that keeps ledgers. It is the model too, which remembers its latest request.
type clerk struct {
	box       *mailbox.Mailbox
	out       *inbox.Inbox
	threads   *threads.Threads
	compactor *compaction.Compactor

	mu   sync.Mutex
	seen []abi.Message
}

// continued checks the thread after the runs of the second process.
func (p *clerk) continued(t *testing.T, before compaction.State) {
	t.Helper()
	state, _, err := p.threads.State(t.Context(), thread)
	must(t, err)
	ledger, err := json.Marshal(p.ledger(t).State)
	must(t, err)
	if state.Total <= before.Total || !strings.Contains(string(ledger), "turn-0") {
		t.Errorf("%d compactions after %d; the ledger has the first request: %v", state.Total, before.Total, strings.Contains(string(ledger), "turn-0"))
	}
	must(t, p.box.GC(t.Context()))
	after, _, err := p.threads.State(t.Context(), thread)
	must(t, err)
	if after.Dropped <= before.Dropped {
		t.Errorf("%d messages were dropped, %d before", after.Dropped, before.Dropped)
	}
	p.turn(t, "last", false)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, want := range []string{"turn-1 ", "last "} { // the pinned message, and the latest
		if whole := func(m abi.Message) bool { return strings.HasPrefix(m.Text(), want) && len(m.Text()) > 4000 }; !slices.ContainsFunc(p.seen, whole) {
			t.Errorf("the last request lacks %q: %q", want, textsOf(p.seen))
		}
	}
	if err := phases.CheckStructure(p.seen); err != nil {
		t.Error(err)
	}
}

// Infer implements llm.Model.
func (p *clerk) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = r.Messages
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("ack")}}}, nil
}

// ledgers is the store of a compactor in a program: that of the runs, and of the ledgers.
type ledgers struct {
	compaction.Store

	threads *threads.Threads
}

func (l ledgers) LoadLedger(id string) (compaction.StoredLedger, error) {
	return l.threads.LoadLedger(id)
}

func (l ledgers) SaveLedger(id string, s compaction.StoredLedger) error {
	return l.threads.SaveLedger(id, s)
}

func startRetention(t *testing.T, s store.Store) *clerk {
	t.Helper()
	p := &clerk{threads: threads.On(s)}
	var err error
	p.out, err = inbox.New(t.Context(), inbox.Config{Store: s})
	must(t, err)
	fired, err := phases.New(phases.Config{})
	must(t, err)
	runs, err := agentrun.New(agentrun.Config{Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
		return agent.Config{
			Profile: agent.Profile{Model: p, Phases: fired}, Compactor: p.compactor,
			Notifications: agent.Notifications{Take: func(ctx context.Context, thread string) (agent.Delivery, error) { return p.out.Take(ctx, thread) }},
		}, nil
	}})
	must(t, err)
	p.compactor, err = compaction.New(compaction.Config{
		Policy: compaction.Policy{
			WindowTokens: 100_000, ThresholdTokens: 2_000, KeepRecentTokens: 1, KeepRecentMessages: 1, MinRangeTokens: 500, SummaryTokens: 500, BreakerFailures: -1,
		},
		Summarizer: compaction.Ledger{}, Store: ledgers{runs.Compactions(p.threads), p.threads},
		Spawn: (&office{out: p.out}).spawn,
	})
	must(t, err)
	p.box, err = mailbox.New(t.Context(), mailbox.Config{
		Store: s, Runtime: runs, Wake: agentrun.Wake, Poll: 20 * time.Millisecond, Retention: mailbox.Retention{Interval: -1, MaxMessages: 2},
	})
	must(t, err)
	t.Cleanup(func() { p.close(t) })
	must(t, p.box.Start(t.Context()))
	return p
}

func (p *clerk) close(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	must(t, p.box.Close(ctx))
	must(t, p.out.Close(ctx))
}

// turns makes runs until there were so many compactions and none is under way. The message of the second run is pinned.
func (p *clerk) turns(t *testing.T, name string, compactions int) {
	t.Helper()
	for i := range maxTurns {
		p.turn(t, fmt.Sprintf("%s-%d", name, i), name == "turn" && i == 1)
		state, _, err := p.threads.State(t.Context(), thread)
		must(t, err)
		if state.Total >= compactions && state.InFlight == nil {
			return
		}
	}
	t.Fatalf("no %d compactions after %d runs", compactions, maxTurns)
}

// turn is a run.
func (p *clerk) turn(t *testing.T, text string, pinned bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	inputs, err := agentrun.Inputs(abi.Message{
		ID: text, Role: abi.RoleUser, Pinned: pinned, Content: []abi.ContentBlock{abi.Text(text + " " + strings.Repeat("filler ", 600))},
	})
	must(t, err)
	sub, err := p.box.SubmitBackground(ctx, mailbox.Request{Thread: thread, Messages: inputs})
	must(t, err)
	d, err := p.box.Await(ctx, sub.Dispatch)
	must(t, err)
	if d.Status != mailbox.Acked || d.RunStatus != mailbox.RunDone {
		t.Fatalf("%s: dispatch is %+v", text, d)
	}
}

func (p *clerk) log(t *testing.T) []abi.Message {
	t.Helper()
	log, err := p.threads.Messages(t.Context(), thread)
	must(t, err)
	return log
}

func (p *clerk) ledger(t *testing.T) compaction.StoredLedger {
	t.Helper()
	l, err := p.threads.LoadLedger(thread)
	must(t, err)
	if l.Messages == 0 {
		t.Fatal("no ledger is stored")
	}
	return l
}

// undoAll undoes compactions as often as it can, and reports whether none is left.
func (p *clerk) undoAll() bool {
	state, _, err := p.threads.Load(thread)
	for ok := true; ok && err == nil; {
		_, ok = state.Undo()
	}
	return err == nil && len(state.Markers) == 0
}

// pages checks that each page of the log has the messages of its places.
func (p *clerk) pages(t *testing.T, log, rest []abi.Message) {
	t.Helper()
	if len(log) != len(rest) {
		t.Fatalf("the log has %d messages, and had %d", len(rest), len(log))
	}
	for _, limit := range []int{1, 3, 7, 500} {
		for from := 1; from <= len(log); from++ {
			page, err := p.box.Messages(t.Context(), thread, from, limit)
			must(t, err)
			if want := min(limit, len(log)-from+1); len(page) != want {
				t.Fatalf("%d messages from %d on, want %d", len(page), from, want)
			}
			for i, m := range page {
				v, err := agentrun.DecodeMessage(m)
				must(t, err)
				if at := from + i; m.Seq != at || m.ID != log[at-1].ID || !reflect.DeepEqual(v, rest[at-1]) || m.Run == "" || m.At.IsZero() {
					t.Fatalf("place %d has %+v", at, m)
				}
			}
		}
	}
}

// stored is how many bytes the messages of the thread have.
func stored(t *testing.T, s store.Store) (n int) {
	t.Helper()
	read, err := s.Read(t.Context(), thread, threads.MessagesQuery(1, 1<<20))
	must(t, err)
	for i := range read.Entries {
		n += len(read.Entries[i].Data)
	}
	for i := range read.Cells {
		n += len(read.Cells[i].Value)
	}
	return n
}

func textsOf(list []abi.Message) (out []string) {
	for i := range list {
		out = append(out, fmt.Sprintf("%s %s: %.40s", list[i].ID, list[i].Role, list[i].Text()))
	}
	return out
}
