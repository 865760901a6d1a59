package background_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

// echo reads n messages and returns them as text.
func echo(n int) background.AgentBody {
	return func(ctx context.Context, _ *background.Task, box *inbox.Box) (any, error) {
		var got []any
		for range n {
			notice, err := box.Recv(ctx)
			if err != nil {
				return nil, err
			}
			p, _ := notice.Payload.(map[string]any)
			if notice.EventType != background.AgentMessage || notice.Kind != abi.NoticeCustom {
				return nil, fmt.Errorf("read %+v", notice)
			}
			got = append(got, fmt.Sprintf("%s:%s>%s", p["from"], p["content"], notice.TaskID))
		}
		return got, nil
	}
}

func agent(t *testing.T, m *background.Manager, thread string, body background.AgentBody) string {
	t.Helper()
	id, err := m.SpawnAgent(t.Context(), background.Spec{Thread: thread, Description: "an agent"}, body)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestSubAgent(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *background.Manager, *ledger){
		"spawn_agent_with_context_exposes_task_id": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := agent(t, m, "a", func(_ context.Context, task *background.Task, _ *inbox.Box) (any, error) { return task.ID(), nil })
			wait(t, m, "a")
			if info := status(t, m, id); info.Result != id || info.Type != background.SubAgent {
				t.Fatalf("task is %+v", info)
			}
		},
		"send_message_delivers_to_sub_agent": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := agent(t, m, "a", echo(1))
			if err := m.SendMessage(t.Context(), id, "a", "boss", "go"); err != nil {
				t.Fatal(err)
			}
			wait(t, m, "a")
			if got, _ := status(t, m, id).Result.([]any); len(got) != 1 || got[0] != "boss:go>"+id {
				t.Fatalf("the agent read %v", got)
			}
		},
		"empty_message_delivers": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := agent(t, m, "a", echo(1))
			if err := m.SendMessage(t.Context(), id, "a", "boss", ""); err != nil {
				t.Fatal(err)
			}
			wait(t, m, "a")
			if got, _ := status(t, m, id).Result.([]any); len(got) != 1 || got[0] != "boss:>"+id {
				t.Fatalf("the agent read %v", got)
			}
		},
		"multiple_children_route_correctly": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			ids := []string{agent(t, m, "a", echo(2)), agent(t, m, "a", echo(2)), agent(t, m, "a", echo(2))}
			for round := range 2 {
				for i, id := range ids {
					if err := m.SendMessage(t.Context(), id, "a", "boss", fmt.Sprint(i, round)); err != nil {
						t.Fatal(err)
					}
				}
			}
			wait(t, m, "a")
			for i, id := range ids {
				want := fmt.Sprintf("[boss:%d 0>%s boss:%d 1>%s]", i, id, i, id)
				if got := fmt.Sprint(status(t, m, id).Result); got != want {
					t.Fatalf("agent %d read %s, want %s", i, got, want)
				}
			}
		},
		"full_lifecycle_sub_agent_with_child_tasks": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			id := agent(t, m, "a", func(ctx context.Context, task *background.Task, box *inbox.Box) (any, error) {
				child, err := m.Spawn(ctx, background.Spec{Thread: task.ID(), Type: "step", Body: func(context.Context, *background.Task) (any, error) { return "part", nil }})
				if err != nil {
					return nil, err
				}
				info, err := m.WaitTask(ctx, child)
				if err != nil {
					return nil, err
				}
				n, err := box.Recv(ctx)
				p, _ := n.Payload.(map[string]any)
				return fmt.Sprint(info.Result, " ", p["content"]), err
			})
			if err := m.SendMessage(t.Context(), id, "a", "boss", "whole"); err != nil {
				t.Fatal(err)
			}
			wait(t, m, "a")
			if info := status(t, m, id); info.Result != "part whole" {
				t.Fatalf("task is %+v", info)
			}
			if own := l.of(id); len(own) != 1 || own[0].Result != "part" {
				t.Fatalf("the sub-agent's own thread got %+v", own)
			}
			if own := l.of("a"); len(own) != 1 || own[0].Kind != abi.NoticeCompleted {
				t.Fatalf("the parent's thread got %+v", own)
			}
		},
		"nested_spawn_agent_events_flow": func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			outer := agent(t, m, "a", func(ctx context.Context, task *background.Task, _ *inbox.Box) (any, error) {
				task.Emit("outer", nil)
				inner, err := m.SpawnAgent(ctx, background.Spec{Thread: "a"}, func(_ context.Context, task *background.Task, _ *inbox.Box) (any, error) {
					task.Emit("inner", nil)
					return "inner", nil
				})
				if err != nil {
					return nil, err
				}
				_, err = m.WaitTask(ctx, inner)
				return "outer", err
			})
			wait(t, m, "a")
			var got []string
			for _, n := range l.of("a") {
				got = append(got, n.EventType+fmt.Sprint(n.Result))
			}
			if text := strings.Join(got, " "); text != "outer<nil> inner<nil> inner outer" {
				t.Fatalf("events are %q", text)
			}
			for _, info := range m.List("a") {
				if info.ID != outer && info.Parent.TaskID != outer {
					t.Fatalf("lineage of the inner agent is %+v", info.Parent)
				}
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, test)
		})
	}
}

func TestSendMessageRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *background.Manager, *ledger){
		"send_message_rejects_wrong_thread": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			refused(t, m.SendMessage(t.Context(), agent(t, m, "a", echo(1)), "b", "x", "y"), background.ErrNotOwner, "caller does not own this task")
		},
		"send_message_rejects_completed_task": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := agent(t, m, "a", echo(0))
			wait(t, m, "a")
			refused(t, m.SendMessage(t.Context(), id, "a", "x", "y"), background.ErrTerminated, "task already completed")
		},
		"send_message_rejects_nonexistent_task": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			refused(t, m.SendMessage(t.Context(), "bg_404", "a", "x", "y"), background.ErrNotFound, "task not found")
		},
		"send_message_rejects_regular_task": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			refused(t, m.SendMessage(t.Context(), spawn(t, m, "a", untilCancelled), "a", "x", "y"), background.ErrNoInbox, "task has no inbox (not a sub-agent)")
		},
		"send_to_completed_task_returns_error": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, errors.New("no") })
			wait(t, m, "a")
			refused(t, m.SendMessage(t.Context(), id, "a", "x", "y"), background.ErrTerminated, "task already failed")
			id = agent(t, m, "a", func(context.Context, *background.Task, *inbox.Box) (any, error) { return "done", nil })
			wait(t, m, "a")
			refused(t, m.SendMessage(t.Context(), id, "a", "x", "y"), background.ErrTerminated, "task already completed")
			if info := status(t, m, id); info.Status != background.Completed || info.Result != "done" {
				t.Fatalf("the sub-agent is %+v", info)
			}
		},
		"inbox_closed_after_agent_completes": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			boxes := make(chan *inbox.Box, 1)
			id := agent(t, m, "a", func(_ context.Context, _ *background.Task, box *inbox.Box) (any, error) {
				boxes <- box
				return nil, nil
			})
			wait(t, m, "a")
			if err := (<-boxes).Send(t.Context(), abi.Notice{}); !errors.Is(err, inbox.ErrClosed) {
				t.Fatal("the inbox outlives the agent")
			}
			refused(t, m.SendMessage(t.Context(), id, "a", "x", "y"), background.ErrTerminated, "task already completed")
		},
		"receiver_gone": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := agent(t, m, "a", func(ctx context.Context, task *background.Task, box *inbox.Box) (any, error) {
				box.Close()
				return untilCancelled(ctx, task)
			})
			synctest.Wait()
			refused(t, m.SendMessage(t.Context(), id, "a", "x", "y"), background.ErrInboxClosed, "sub-agent inbox closed")
		},
		"full": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			id := agent(t, m, "a", func(ctx context.Context, task *background.Task, _ *inbox.Box) (any, error) {
				return untilCancelled(ctx, task)
			})
			var err error
			for i := 0; err == nil && i < 10_000; i++ {
				err = m.SendMessage(t.Context(), id, "a", "x", "y")
			}
			refused(t, err, background.ErrInboxFull, "is full")
		},
		"too_large": func(t *testing.T, m *background.Manager, _ *ledger) {
			t.Helper()
			long := strings.Repeat("x", background.DefaultMaxPayload)
			refused(t, m.SendMessage(t.Context(), agent(t, m, "a", echo(1)), "a", "x", long), background.ErrTooLarge, "at most")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, test)
		})
	}
}

func refused(t *testing.T, err, want error, text string) {
	t.Helper()
	if !errors.Is(err, want) || !strings.Contains(err.Error(), text) {
		t.Fatalf("error is %v, want %v with %q", err, want, text)
	}
}

// TestUnreadMessagesComeBack races messages with the end of their agent: each
// that was accepted is read, or its owner is notified before the agent's end.
func TestUnreadMessagesComeBack(t *testing.T) {
	t.Parallel()
	for range 2000 {
		inBubble(t, func(t *testing.T, m *background.Manager, l *ledger) {
			t.Helper()
			read := make(chan int, 1)
			id := agent(t, m, "a", func(ctx context.Context, _ *background.Task, box *inbox.Box) (any, error) {
				_, err := box.Recv(ctx)
				read <- 1 + len(box.Drain())
				return nil, err
			})
			accepted := make(chan int, 4)
			for range 4 {
				go func() {
					n := 0
					for range 5 {
						if m.SendMessage(t.Context(), id, "a", "x", "y") == nil {
							n++
						}
					}
					accepted <- n
				}()
			}
			total := <-accepted + <-accepted + <-accepted + <-accepted
			wait(t, m, "a")
			back := 0
			notices := l.of("a")
			for _, n := range notices {
				if n.EventType == background.UndeliveredMessages {
					p, _ := n.Payload.(map[string]any)
					left, _ := p["messages"].([]any)
					back += len(left)
				}
			}
			if got := <-read; got+back != total || m.Stats().Undelivered != back || notices[len(notices)-1].Kind != abi.NoticeCompleted {
				t.Fatalf("%d read and %d returned of %d accepted", got, back, total)
			}
		})
	}
}
