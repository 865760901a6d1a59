package outbox_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/notice"
	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/phases"
)

// model fails at first and then says "seen"; it remembers what it was asked.
type model struct {
	mu    sync.Mutex
	fails int
	asked []llm.Request
}

func (m *model) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fails > 0 {
		m.fails--
		return nil, errors.New("overloaded")
	}
	m.asked = append(m.asked, r)
	return &abi.Response{Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("seen")}}, StopReason: abi.StopEndTurn}, nil
}

// TestRunOnNews ends tasks while their thread is idle. One run hears of all; a run
// that fails gives them back, and the next has them; another task that still runs
// is listed for the model.
func TestRunOnNews(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		brain := &model{fails: 1}
		var a *agent.Agent
		var m *background.Manager
		var o *outbox.Outbox
		runs := 0
		onNews := func(ctx context.Context, thread string) error {
			d, err := o.Take(ctx, thread)
			if err != nil {
				return err
			}
			defer d.Release()
			text, used := notice.Prepend(d.Notices(), notice.ResumePrompt, 0)
			runs++
			if _, err := a.Run(ctx, agent.Request{ThreadID: thread, Messages: []abi.Message{notice.Message(text)}}); err != nil {
				return err
			}
			return d.Ack(ctx, used) // where a thread is kept beyond the process: after it was
		}
		o = newOutbox(t, outbox.Config{Wake: onNews, Acknowledged: func(ctx context.Context, thread string, ids ...string) { m.Acknowledge(ctx, thread, ids...) }})
		m, err := background.New(background.Config{Ledger: o, NewID: sequence()})
		if err != nil {
			t.Fatal(err)
		}
		fired, err := phases.New(phases.Config{Plugins: []phases.Plugin{m.Plugin()}})
		if err != nil {
			t.Fatal(err)
		}
		if a, err = agent.New(agent.Config{Model: brain, Phases: fired}); err != nil {
			t.Fatal(err)
		}
		d := &desk{Manager: m, out: o}
		d.start(t, hanging)
		d.end(t, "one", errors.New("two"))
		<-time.After(time.Minute)
		synctest.Wait() // the runs are over, and what they wrote can be read
		if runs != 2 || len(brain.asked) != 1 || o.Waiting("a") != 0 {
			t.Fatalf("%d runs, %d answers, %d notices wait", runs, len(brain.asked), o.Waiting("a"))
		}
		var all strings.Builder
		for _, message := range brain.asked[0].Messages {
			all.WriteString(message.Text() + "\n")
		}
		for _, want := range []string{"Task t1 (completed):\none\n\nTask t2 (failed):\ntwo\n", notice.ResumePrompt, "[task t0] running, task"} {
			if !strings.Contains(all.String(), want) {
				t.Fatalf("%q is not in what the model was shown: %s", want, all.String())
			}
		}
		if err := m.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		closeOutbox(t, o)
	})
}
