package background

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// SubAgent is the type of every task that SpawnAgent starts.
const SubAgent = "sub_agent"

// AgentMessage is the event type of a message to a sub-agent. Its payload has the
// fields "from" and "content".
const AgentMessage = "agent_message"

// UndeliveredMessages is the event type of the notifications with what a
// sub-agent did not read before it ended. Each has as many messages as MaxPayload allows,
// one at least, in the field "messages", and their number in "count".
const UndeliveredMessages = "undelivered_messages"

// sendTimeout bounds how long SendMessage waits for room in a sub-agent's inbox.
const sendTimeout = 5 * time.Second

// agentDepth is how many messages a sub-agent's inbox holds.
const agentDepth = 256

// Errors of SendMessage and WaitTask.
var (
	ErrNotFound    = errors.New("task not found")
	ErrNotOwner    = errors.New("caller does not own this task")
	ErrTerminated  = errors.New("task already")
	ErrNoInbox     = errors.New("task has no inbox (not a sub-agent)")
	ErrInboxClosed = errors.New("sub-agent inbox closed")
	ErrInboxFull   = errors.New("sub-agent inbox is full")
	ErrTooLarge    = errors.New("message is too large")
)

// AgentBody is the work of a sub-agent. It reads its messages from box, which is
// closed when it has ended.
type AgentBody func(ctx context.Context, t *Task, box *inbox.Box) (any, error)

// SpawnAgent starts a task that messages can be sent to. The spec's type is set
// to [SubAgent] and its body to body.
func (m *Manager) SpawnAgent(ctx context.Context, spec Spec, body AgentBody) (string, error) {
	if body == nil {
		return "", errors.New("background: SpawnAgent: the body is missing")
	}
	box := inbox.NewBox(agentDepth, m.cfg.Logger)
	spec.Type = SubAgent
	spec.Body = func(ctx context.Context, t *Task) (any, error) { return body(ctx, t, box) }
	return m.spawn(ctx, spec, box)
}

// SendMessage puts a message into the inbox of a sub-agent of the thread. Nil
// means that it was accepted: the sub-agent can read it, or its owner gets it back
// whole, in a notification before the sub-agent's end. Until then it is in memory alone, also
// when there is a Ledger: it is lost when the process ends without Close, or when the
// owner accepts nothing until Close gives up ([Stats]). What must outlive the process goes
// to a thread, see Config.Forward. The errors are those above, in the order in which
// they are checked.
func (m *Manager) SendMessage(ctx context.Context, task, thread, from, content string) error {
	if err := m.send(ctx, task, thread, from, content); err != nil {
		return fmt.Errorf("background: message to task %.80q: %w", task, err)
	}
	return nil
}

func (m *Manager) send(ctx context.Context, task, thread, from, content string) error {
	m.mu.Lock()
	t, status := m.tasks[task], Status("")
	if t != nil {
		status = t.info.Status
	}
	m.mu.Unlock()
	switch size := len(content) + len(from); {
	case t == nil:
		return ErrNotFound
	case t.info.Thread != thread:
		return ErrNotOwner
	case status.Terminal():
		return fmt.Errorf("%w %s", ErrTerminated, status)
	case t.box == nil:
		return ErrNoInbox
	case size > m.cfg.MaxPayload:
		return fmt.Errorf("%w: %d bytes, at most %d are allowed", ErrTooLarge, size, m.cfg.MaxPayload)
	}
	wait, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	err := t.box.Send(wait, abi.Notice{
		Kind: abi.NoticeCustom, TaskID: task, EventType: AgentMessage,
		Payload: map[string]any{"from": from, "content": content},
	})
	switch {
	case errors.Is(err, inbox.ErrClosed):
		return ErrInboxClosed
	case err != nil && ctx.Err() == nil:
		return ErrInboxFull
	}
	return err
}

// unread closes the inbox of a sub-agent and returns notifications with what it did
// not read: all of it, in as many as MaxPayload demands.
func (m *Manager) unread(t *Task) (notices []abi.Notice) {
	if t.box == nil {
		return nil
	}
	room, total := 0, 0
	var batch []any
	for _, n := range t.box.Close() {
		if n.EventType != AgentMessage {
			continue
		}
		size := len(inbox.Text(n.Payload))
		if len(notices) == 0 || size > room {
			notices = append(notices, abi.Notice{Kind: abi.NoticeCustom, TaskID: t.info.ID, EventType: UndeliveredMessages, Housekeeping: t.info.Class == Housekeeping})
			room, batch = m.cfg.MaxPayload, nil
		}
		total, room, batch = total+1, room-size, append(batch, n.Payload)
		notices[len(notices)-1].Payload = map[string]any{"count": int64(len(batch)), "messages": batch}
	}
	if total > 0 {
		m.count(func(s *Stats) { s.Undelivered += total })
		m.cfg.Logger.Warn("sub-agent ended before it read its messages", "task_id", t.info.ID, "messages", total)
	}
	return notices
}

// Message is a message from one agent to another.
type Message struct {
	Thread  string // that it goes to
	Agent   string // of the thread, empty means its default
	From    string // agent or task that sends it
	Content string
}
