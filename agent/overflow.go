package agent

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

// overflowWait is how long a run waits for a compaction that it cannot do without.
const overflowWait = time.Minute

// shrink makes a request smaller that was too large for the model: by a compaction
// if one comes in time, and else by leaving out the oldest half of what the model
// would see. The log keeps everything.
func (r *run) shrink(ctx context.Context, request llm.Request) (llm.Request, bool) {
	before := r.view
	head, tail := around(request.Messages, before)
	if r.cfg.Compactor != nil {
		r.cfg.Compactor.Request(r.thread.id, "")
		if r.cfg.Compactor.Consider(ctx, r.thread.id, r.thread.snapshot()) {
			r.awaitCompaction(ctx)
		}
		r.refresh()
	}
	if weight(r.view) >= weight(before) {
		r.view = halve(before)
	}
	if weight(r.view) >= weight(before) {
		return request, false
	}
	r.cfg.Logger.WarnContext(ctx, "context exceeds the model's window and was cut", "run_id", r.id.RunID, "messages", len(before), "left", len(r.view))
	messages := append(append(append(make([]abi.Message, 0, len(r.view)+len(head)+len(tail)), head...), r.view...), tail...)
	request.Messages = messages
	return request, true
}

// around are the messages of a request that are not part of the view: before it and
// behind it. Those in its midst come before.
func around(request, view []abi.Message) (head, tail []abi.Message) {
	own := make(map[string]bool, len(view))
	last := ""
	for i := range view {
		own[view[i].ID] = true
		last = view[i].ID
	}
	behind := false
	for i := range request {
		switch {
		case own[request[i].ID]:
			behind = behind || request[i].ID == last
		case behind:
			tail = append(tail, request[i])
		default:
			head = append(head, request[i])
		}
	}
	return head, tail
}

// awaitCompaction reads the inbox until the compactor has taken what it waits for.
// Everything else is kept for the next step.
func (r *run) awaitCompaction(ctx context.Context) {
	limit := time.NewTimer(min(overflowWait, r.cfg.WaitLimit))
	defer limit.Stop()
	var kept []abi.Notice
	defer func() { r.thread.putBack(kept) }()
	size := weight(r.view)
	for {
		arrival, stop := r.arrival(ctx)
		select {
		case n := <-arrival:
			stop()
			if !r.agent.consume(r.thread, n) {
				kept = append(kept, n)
				continue
			}
			r.refresh()
			// The notice of the end says nothing new if that of the summary was taken.
			if weight(r.view) < size || n.Kind != abi.NoticeCustom {
				return
			}
		case <-limit.C:
			stop()
			return
		case <-ctx.Done():
			stop()
			return
		}
	}
}

// weight is about how large messages are, in bytes.
func weight(messages []abi.Message) int {
	n := 0
	for i := range messages {
		for j := range messages[i].Content {
			b := &messages[i].Content[j]
			n += len(b.Text) + len(b.Data)
		}
		for j := range messages[i].ToolCalls {
			n += len(dataText(messages[i].ToolCalls[j].Arguments))
		}
	}
	return n
}

// halve leaves out the oldest rounds until half of the weight is gone. A round
// begins with a message that is no result. Leading system messages, pinned ones, the
// newest message of the user and everything from the newest round on stay.
func halve(view []abi.Message) []abi.Message {
	lead := 0
	for lead < len(view) && view[lead].Role == abi.RoleSystem {
		lead++
	}
	user := -1
	for i := range view {
		if view[i].Role == abi.RoleUser && view[i].Visibility != abi.VisibilityInternal {
			user = i
		}
	}
	target := weight(view) / 2
	out := append(make([]abi.Message, 0, len(view)), view[:lead]...)
	left := weight(view)
	for i := lead; i < len(view); {
		end, pinned := i+1, view[i].Pinned
		for end < len(view) && view[end].Role == abi.RoleTool {
			pinned = pinned || view[end].Pinned
			end++
		}
		if left <= target || pinned || end == len(view) || user >= i && user < end {
			out = append(out, view[i:end]...)
		} else {
			left -= weight(view[i:end])
		}
		i = end
	}
	return out
}
