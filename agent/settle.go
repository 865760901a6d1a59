package agent

import (
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// settle takes what waits in the inbox: notices about compactions are consumed
// first, messages go to the log, the rest is shown to the plugins at the next
// phase and, as a message, to the model. It says whether the model has something
// new to read.
func (r *run) settle() (arrived bool) {
	waiting := append(r.thread.takeHeld(), r.box.Drain()...)
	for _, n := range waiting {
		if r.agent.consume(r.thread, n) {
			continue
		}
		r.notices = append(r.notices, n)
		if n.Housekeeping {
			continue
		}
		messages := r.worded(n)
		r.thread.append(messages...)
		arrived = arrived || len(messages) > 0
	}
	if len(waiting) > 0 {
		r.refresh()
	}
	return arrived
}

// worded returns what a notice says to the model. Messages that the log cannot
// take are shown as the text of the notice: they are not lost, and they cannot
// break the conversation.
func (r *run) worded(n abi.Notice) []abi.Message {
	if n.Kind != abi.NoticeMessages {
		n := noticeMessage(n)
		n.ID = r.freshID()
		return []abi.Message{n}
	}
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
		r.cfg.Logger.Warn("messages of a notice do not fit the conversation", "thread_id", r.thread.id, "task_id", n.TaskID, "error", err)
		m := noticeMessage(n)
		m.ID = r.freshID()
		return []abi.Message{m}
	}
	return messages
}

// consume lets the compactor have a notice.
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
