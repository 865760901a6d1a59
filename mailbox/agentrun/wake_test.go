package agentrun_test

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// starter is a model that starts one task, and then says ok. It remembers what each request ends with.
type starter struct {
	mu   sync.Mutex
	seen []string
}

func (s *starter) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last []string
	for _, m := range r.Messages[max(0, len(r.Messages)-2):] {
		last = append(last, m.Text())
	}
	s.seen = append(s.seen, strings.Join(last, " "))
	m := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("ok")}}
	if len(s.seen) == 1 {
		m = abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c1", Name: "start"}}}
	}
	return &abi.Response{Message: m}, nil
}

// starts is the tool "start": a task of that class, which takes so long.
type starts struct {
	tasks *background.Manager
	class background.Class
	takes time.Duration
}

func (starts) Tools() []abi.Tool { return []abi.Tool{{Name: "start"}} }

func (s starts) CallTool(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
	id, err := s.tasks.Spawn(ctx, background.Spec{Thread: "t", Type: "build", Class: s.class, Body: func(context.Context, *background.Task) (any, error) {
		time.Sleep(s.takes)
		return map[string]any{"done": true}, nil
	}})
	return abi.ToolResult{Message: "started " + id}, err
}

// wired is a mailbox whose runs have tasks, as docs/embedding.md wires them.
type wired struct {
	store store.Store
	tasks *background.Manager
	out   *inbox.Inbox
	run   *agentrun.Runtime
	box   *mailbox.Mailbox
}

// newWired makes one. Change completes the config of each run.
func newWired(t *testing.T, change func(w *wired, c *agent.Config)) *wired {
	t.Helper()
	w := &wired{store: memstore.New()}
	var err error
	w.out, err = inbox.New(t.Context(), inbox.Config{Store: memstore.New(), Acknowledged: func(ctx context.Context, thread string, ids ...string) { w.tasks.Acknowledge(ctx, thread, ids...) }})
	must(t, err)
	w.tasks, err = background.New(background.Config{Ledger: w.out})
	must(t, err)
	fired, err := phases.New(phases.Config{Plugins: []phases.Plugin{w.tasks.Plugin()}})
	must(t, err)
	w.run, err = agentrun.New(agentrun.Config{Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
		c := agent.Config{
			Profile: agent.Profile{Phases: fired}, Notifications: agent.Notifications{
				Pending: w.tasks.HasBlocking,
				Take:    func(ctx context.Context, thread string) (agent.Delivery, error) { return w.out.Take(ctx, thread) },
			}, Execution: agent.Execution{ToolContext: background.ToolContext},
		}
		change(w, &c)
		return c, nil
	}})
	must(t, err)
	w.box, err = mailbox.New(t.Context(), mailbox.Config{Store: w.store, Runtime: w.run, Wake: agentrun.Wake})
	must(t, err)
	must(t, w.box.Start(t.Context()))
	w.out.Start(agentrun.Waker(w.box))
	return w
}

func (w *wired) close(t *testing.T) {
	t.Helper()
	must(t, w.box.Close(t.Context()))
	must(t, w.tasks.Close(t.Context()))
	must(t, w.out.Close(t.Context()))
}

func (w *wired) dispatches(t *testing.T) []mailbox.Dispatch {
	t.Helper()
	list, err := w.box.Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Limit: 20})
	must(t, err)
	return list
}

// TestTaskEndWakes: the end of a task queues one internal request while no run is under way, and
// the run that it wakes reads the result of the task. A run that waits for the task continues; after
// one that did not wait another one begins.
func TestTaskEndWakes(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		class background.Class
		takes time.Duration
		waits bool
	}{
		"blocking":        {background.Blocking, time.Minute, true},
		"blocking, short": {background.Blocking, 25 * time.Millisecond, true},
		"detached":        {background.Detached, time.Minute, false},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := &starter{}
				w := newWired(t, func(w *wired, c *agent.Config) {
					c.Model, c.Tools = model, starts{w.tasks, test.class, test.takes}
				})
				first := request(t, "t", user("start"))
				first.Tenant = "tenant"
				sub, err := w.box.SubmitBackground(t.Context(), first)
				must(t, err)
				d, err := w.box.Await(t.Context(), sub.Dispatch)
				must(t, err)
				if want := map[bool]mailbox.RunStatus{true: mailbox.RunWaiting, false: mailbox.RunDone}[test.waits]; d.RunStatus != want {
					t.Errorf("the run is %s before the task ends, want %s", d.RunStatus, want)
				}
				time.Sleep(time.Hour) // the wakes have a growing pause: there must not be another one
				synctest.Wait()
				list := w.dispatches(t)
				if len(list) != 2 || list[1].Origin != mailbox.OriginInternal || list[1].RunStatus != mailbox.RunDone || (list[1].RunID == sub.Run) != test.waits {
					t.Errorf("dispatches are %+v", list)
				}
				if n := len(model.seen); n != 3 || !strings.Contains(model.seen[2], `{"done":true}`) {
					t.Errorf("the model read %q", model.seen)
				}
				got := log(t, w.store, "t")
				if told := slices.DeleteFunc(slices.Clone(got), func(s string) bool { return !strings.Contains(s, `{"done":true}`) }); len(told) != 1 || w.out.Waiting("t") != 0 {
					t.Errorf("log is %q, and %d notifications wait", got, w.out.Waiting("t"))
				}
				w.close(t)
			})
		})
	}
}

// TestWakerQueuesOnce: a thread is not woken while something is due that reads the notifications too,
// and one that the mailbox does not know is not woken at all.
func TestWakerQueuesOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{}
		p := newProcess(t, memstore.New(), "one", &counter{rounds: 1}, s)
		wake := agentrun.Waker(p.box)
		if err := wake(t.Context(), "t"); err == nil || !strings.Contains(err.Error(), "no such thread") {
			t.Errorf("an unknown thread: %v", err)
		}
		sub := p.submit(t, request(t, "t", user("go")))
		synctest.Wait()
		must(t, wake(t.Context(), "t")) // its run is under way
		if _, err := p.box.Cancel(t.Context(), sub.Dispatch); err != nil {
			t.Fatal(err)
		}
		p.await(t, sub)
		synctest.Wait()
		later := request(t, "t", user("later"))
		later.At = time.Now().Add(time.Hour)
		p.submit(t, later)
		for range 3 { // what is due in an hour is no reason not to wake
			must(t, wake(t.Context(), "t"))
		}
		synctest.Wait()
		head, err := p.box.Thread(t.Context(), "t")
		must(t, err)
		if head.Seq != 3 || head.Queued != 1 || head.Open.ID != "" {
			t.Errorf("thread is %+v", head)
		}
	})
}
