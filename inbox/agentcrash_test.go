package inbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// agentCrashes is how often that child is killed.
const agentCrashes = 60

// filed is a store of one thread in one file, as whole as a rename is.
type filed struct {
	*agent.Memory

	path string
}

func openFiled(ctx context.Context, path string) (*filed, error) {
	f := &filed{Memory: agent.NewMemory(), path: path}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	var c agent.Checkpoint
	if err := json.Unmarshal(data, &c); err != nil {
		return nil, err
	}
	return f, f.Memory.SaveCheckpoint(ctx, c)
}

func (f *filed) SaveCheckpoint(ctx context.Context, c agent.Checkpoint) error {
	if err := f.Memory.SaveCheckpoint(ctx, c); err != nil {
		return err
	}
	whole, _, err := f.LoadThread(ctx, c.Run.ThreadID)
	if err != nil {
		return err
	}
	data, err := json.Marshal(whole)
	if err != nil {
		return err
	}
	if err := os.WriteFile(f.path+".new", data, 0o600); err != nil {
		return err
	}
	return os.Rename(f.path+".new", f.path)
}

// starter is a model that starts a task with every other answer, and otherwise states
// that it has seen the notifications.
type starter struct{ n int }

func (s *starter) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	answer := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("seen")}}
	s.n++
	if len(r.Tools) > 0 && s.n%2 == 1 {
		answer.Content, answer.ToolCalls = nil, calls("build", "build")
	}
	return &abi.Response{Message: answer, StopReason: abi.StopEndTurn}, nil
}

// firm is an agent with tasks, an outbox in a journal and a thread in a file.
type firm struct {
	store *sqlitestore.Store
	out   *inbox.Inbox
	tasks *background.Manager
	agent *agent.Agent
	saved *filed
}

// openFirm opens what is in a folder and continues with it. Every other task can be
// resumed.
func openFirm(ctx context.Context, folder string, say func(words ...any), own agent.Tools) (*firm, error) {
	f := &firm{}
	var err error
	if f.store, err = sqlitestore.Open(ctx, sqlitestore.Config{Path: filepath.Join(folder, "inbox.db")}); err != nil {
		return nil, err
	}
	if f.saved, err = openFiled(ctx, filepath.Join(folder, "thread")); err != nil {
		return nil, err
	}
	f.out, err = inbox.New(ctx, inbox.Config{Store: f.store, Debounce: time.Millisecond, Acknowledged: func(ctx context.Context, thread string, ids ...string) {
		for _, id := range ids {
			say("acked", id)
		}
		f.tasks.Acknowledge(ctx, thread, ids...)
	}})
	if err != nil {
		return nil, err
	}
	f.tasks, err = background.New(background.Config{Ledger: f.out, Resume: func(info background.Info) background.Body {
		if info.Type != "resumable" {
			return nil
		}
		return firmBody("resumed")
	}})
	if err != nil {
		return nil, err
	}
	fired, err := phases.New(phases.Config{Plugins: []phases.Plugin{f.tasks.Plugin()}})
	if err != nil {
		return nil, err
	}
	f.agent, err = agent.New(agent.Config{
		Profile: agent.Profile{Model: &starter{}, Phases: fired, Tools: own}, Checkpoints: f.saved, Notifications: agent.Notifications{
			Pending: f.tasks.HasBlocking,
			Take:    func(ctx context.Context, thread string) (agent.Delivery, error) { return f.out.Take(ctx, thread) },
			Words:   func(list []abi.Notice) (string, int) { return inbox.Events(list, 0) },
		},
		// A run that ends at its limit has notifications in its log that the model has not answered, and is not woken for them.
		Limits:    agent.Limits{MaxRounds: -1},
		Execution: agent.Execution{ToolContext: background.ToolContext},
	})
	if err != nil {
		return nil, err
	}
	if err := f.tasks.Recover(ctx); err != nil {
		return nil, err
	}
	f.out.Start(f.agent.Wake)
	return f, nil
}

func firmBody(word string) background.Body {
	return func(ctx context.Context, _ *background.Task) (any, error) {
		select {
		case <-time.After(time.Duration(rand.IntN(12)) * time.Millisecond):
			return word, nil
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// agentCrashChild is an agent at work until it is killed. It prints which tasks were
// started and which of their ends were acknowledged.
func agentCrashChild(ctx context.Context, l killtest.Life, say func(words ...any)) error {
	var f *firm
	kinds := 0
	ready := make(chan struct{}) // a run may begin before f is there
	own := tools{"build": func(ctx context.Context, _ abi.ToolCall) (string, error) {
		<-ready
		kinds++
		id, err := f.tasks.Spawn(ctx, background.Spec{Thread: "a", Type: []string{"plain", "resumable"}[kinds%2], Body: firmBody("built")})
		if err == nil {
			say("spawned", id)
		}
		return "started " + id, err
	}}
	f, err := openFirm(ctx, l.Name, say, own)
	if err != nil {
		return err
	}
	close(ready)
	say("ready", "now")
	for i := 0; ; i++ {
		_, err := f.agent.Run(ctx, asked(fmt.Sprint("go ", i)))
		if err != nil && !errors.Is(err, agent.ErrThreadBusy) {
			return err
		}
		<-time.After(time.Millisecond)
	}
}

// TestAgentCrash kills an agent with tasks at random moments, again and again on one
// folder. Whatever happened, the end of each task stands in the conversation exactly
// once, as completed, resumed and completed, or orphaned; the model has answered it;
// and nothing that was acknowledged waits.
func TestAgentCrash(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		testskip.Skip(t, "the crash test kills processes; run without -short")
	}
	folder := t.TempDir()
	l := &crashLedger{said: map[string]map[string]int{}}
	for range agentCrashes {
		l.run(t, "AGENT", folder, time.Duration(rand.IntN(80)+5)*time.Millisecond)
	}
	f, err := openFirm(t.Context(), folder, func(...any) {}, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Tasks that are resumed end, and their notifications are answered.
	if err := f.tasks.Wait(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	settled := time.NewTicker(time.Millisecond)
	defer settled.Stop()
	for f.out.Waiting("a") > 0 {
		<-settled.C
	}
	for _, end := range []func() error{
		func() error { return f.tasks.Close(t.Context()) }, func() error { return f.out.Close(t.Context()) }, func() error { return f.store.Close(t.Context()) },
	} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
	}
	checkThread(t, l, f)
}

// checkThread compares what the children said with the conversation that is left.
func checkThread(t *testing.T, l *crashLedger, f *firm) {
	t.Helper()
	c, ok, err := f.saved.LoadThread(t.Context(), "a")
	if err != nil || !ok {
		t.Fatal("there is no thread", err)
	}
	if err := phases.CheckStructure(c.Messages); err != nil {
		t.Error(err)
	}
	ends, kinds, open := map[string]int{}, map[string]int{}, 0
	// An answer may be durable while its step is open: its process was killed before or in a tool.
	said := slices.Concat(c.Messages, c.Open)
	for i := range said {
		m := &said[i]
		if m.Role == abi.RoleAssistant {
			open = 0
		}
		for line := range strings.Lines(m.Text()) {
			var n abi.Notice
			if !strings.HasPrefix(line, `{"kind":`) || json.Unmarshal([]byte(line), &n) != nil {
				continue
			}
			ends[n.TaskID]++
			open++
			what := string(n.Kind)
			switch {
			case n.Error == background.Orphaned:
				what = "orphaned"
			case n.Result == "resumed":
				what = "resumed"
			}
			kinds[what]++
		}
	}
	for id := range l.said["spawned"] {
		if ends[id] != 1 {
			t.Errorf("the end of task %s stands %d times in the conversation", id, ends[id])
		}
	}
	for id, n := range ends {
		if n != 1 {
			t.Errorf("the end of task %s stands %d times in the conversation", id, n)
		}
	}
	for id, n := range l.said["acked"] {
		if n > 1 {
			t.Errorf("the end of task %s was acknowledged %d times", id, n)
		}
	}
	if open > 0 {
		t.Errorf("%d ends were not answered", open)
	}
	if len(l.said["spawned"]) < agentCrashes/20 || kinds["completed"] == 0 || kinds["resumed"] == 0 || kinds["orphaned"] == 0 {
		t.Errorf("%d tasks were started, they ended as %v: the test shows nothing", len(l.said["spawned"]), kinds)
	}
	t.Logf("%d crashes: %d tasks, %d messages, ends %v", agentCrashes, len(l.said["spawned"]), len(c.Messages), kinds)
}

// run runs one child, kills it some time after its first word, and reads all that it
// said.
func (l *crashLedger) run(t *testing.T, kind, name string, after time.Duration) {
	t.Helper()
	p := killtest.Start(t, kind, killtest.Life{Name: name})
	if p == nil {
		t.FailNow()
	}
	kill := sync.OnceFunc(func() { time.AfterFunc(after, p.Kill) })
	for line := range p.Said() {
		kill()
		what, id, _ := strings.Cut(line, " ")
		l.note(what, id)
	}
}
