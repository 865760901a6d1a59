package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// Shrinker is what a [Compactor] may also implement: it makes room at once, without a
// model. compaction.Compactor is one.
type Shrinker interface {
	// Shrink returns less than a view that was too large, or false when nothing can be
	// left out. Calls keep their results, and pinned messages stay.
	Shrink(thread string, view []abi.Message) ([]abi.Message, bool)
}

// retry asks once more, with less, after the model's provider has refused a request as
// too large. The log keeps everything.
func (r *run) retry(ctx context.Context, request llm.Request, refused error) (llm.Answer, error) {
	before := r.view
	head, tail := around(request.Messages, before)
	smaller, ok := r.cut(before)
	if !ok {
		return llm.Answer{}, fmt.Errorf(
			"the context exceeds the model's window, and nothing can be left out: what is pinned, the user's newest message and the newest round stay: %w", refused)
	}
	r.thread.refused(weight(before))
	r.thread.shorten(r.full, smaller)
	r.view = smaller
	r.cfg.Logger.WarnContext(ctx, "context exceeds the model's window and was cut", "run_id", r.id.RunID, "messages", len(before), "left", len(smaller))
	if r.cfg.Compactor != nil {
		// A summary is to replace what is left out now.
		r.cfg.Compactor.Request(r.thread.id, "")
		if _, err := r.consider(ctx); err != nil {
			return llm.Answer{}, err
		}
	}
	request.Messages = slices.Concat(head, smaller, tail)
	answer, err := r.ask(ctx, request)
	if overflows(err) {
		err = fmt.Errorf("the context exceeds the model's window, also after it was cut from %d to %d messages: %w", len(before), len(smaller), err)
	}
	return answer, err
}

func overflows(err error) bool {
	failure, ok := errors.AsType[*llm.Error](err)
	return ok && failure.Kind == llm.KindContextOverflow
}

// cut makes a view smaller.
func (r *run) cut(view []abi.Message) ([]abi.Message, bool) {
	smaller := view
	if s, ok := r.cfg.Compactor.(Shrinker); ok {
		if less, ok := s.Shrink(r.thread.id, view); ok {
			smaller = less
		}
	}
	if weight(smaller) >= weight(view) {
		smaller = halve(view)
	}
	return smaller, weight(smaller) < weight(view)
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

// weight is about how large messages are, in bytes.
func weight(messages []abi.Message) int {
	n := 0
	for i := range messages {
		for j := range messages[i].Content {
			b := &messages[i].Content[j]
			n += len(b.Text) + len(b.Data)
		}
		for j := range messages[i].ToolCalls {
			n += len(phases.DataText(messages[i].ToolCalls[j].Arguments))
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
