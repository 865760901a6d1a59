package agent

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/phases"
)

// collect takes what was delivered to the thread and what is stored for it, and reports whether the model has something new to read.
func (r *run) collect(ctx context.Context) (arrived bool) {
	arrived = r.settle()
	return r.take(ctx) || arrived
}

// settle takes what was delivered: notifications about compactions are consumed
// first, messages go to the log, the rest is shown to the plugins at the next
// phase and, as a message, to the model. It reports whether the model has something
// new to read.
func (r *run) settle() (arrived bool) {
	var list []item
	for _, n := range r.thread.box.Drain() {
		list = append(list, item{notice: n})
	}
	return r.receive(list, true)
}

// worded renders the first notifications, used of them, for the model: one
// of messages by itself, or as many of tasks as fit into one message. Messages that do not fit
// the log are shown as the text of the notification: they are not lost, and they cannot
// break the conversation.
func (r *run) worded(list []item) (messages []abi.Message, used int) {
	first := list[0].notice
	if first.Kind == abi.NoticeMessages {
		return r.fitting(first), 1
	}
	var group []abi.Notice
	for _, i := range list {
		if i.notice.Kind == abi.NoticeMessages {
			break
		}
		group = append(group, i.notice)
	}
	text, used := r.words(group)
	if text == "" {
		return nil, used
	}
	return []abi.Message{r.said(text)}, used
}

// said is a message of the runtime to the model.
func (r *run) said(text string) abi.Message {
	m := inbox.Message(text)
	m.ID = r.freshID()
	return m
}

// fitting returns the messages of a notification.
func (r *run) fitting(n abi.Notice) []abi.Message {
	messages := slices.Clone(n.Messages)
	seen := make(map[string]bool, len(messages))
	for i := range messages {
		m := &messages[i]
		if m.ID == "" || seen[m.ID] || r.thread.has(m.ID) {
			m.ID = r.freshID()
		}
		seen[m.ID] = true
	}
	if err := phases.CheckStructure(messages); err != nil {
		r.cfg.Logger.Warn("messages of a notification do not fit the conversation", "thread_id", r.thread.id, "task_id", n.TaskID, "error", err)
		return []abi.Message{r.said(inbox.EventText(n))}
	}
	return messages
}

// consume gives the compactor a notification.
func (a *Agent) consume(t *Thread, n abi.Notice) (taken bool) {
	if a.cfg.Compactor == nil {
		return false
	}
	err := recovered(func() error {
		taken = a.cfg.Compactor.Consume(t.id, t.snapshot(), n)
		return nil
	})
	if err != nil {
		a.cfg.Logger.Error("compactor panicked", "thread_id", t.id, "error", err)
	}
	return taken
}
