package llm

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// What the model reads when it is to continue.
const (
	continueBroken = "Your answer was interrupted on its way. Go on exactly where it stopped, and repeat nothing of it."
	continueCut    = "Your answer was cut at the output limit. Go on exactly where it stopped, and repeat nothing of it. Take smaller pieces: split a long tool call into several."
)

// settle turns the calls of a stream that is over into the calls of the answer.
func (a *ask) settle() {
	for i := range a.got.Calls {
		c := &a.got.Calls[i]
		call := abi.ToolCall{ID: c.ID, Name: c.Name}
		arguments, err := decodeArguments(c.Arguments)
		if err != nil {
			call.Arguments = c.Arguments
			a.places = append(a.places, len(a.calls)+len(a.malformed))
			a.malformed = append(a.malformed, call)
			if !a.req.KeepMalformed {
				a.cancelMalformed(&call)
			}
			continue
		}
		call.Arguments = arguments
		a.calls = append(a.calls, call)
		a.listen(Delta{Type: DeltaCallReady, CallID: c.ID, Name: c.Name, Arguments: arguments})
	}
	a.got.Calls = nil
}

// goOn reports whether an answer that was cut at the output limit is to be continued,
// and prepares the next request.
func (a *ask) goOn() bool {
	if a.got.stop != abi.StopMaxTokens {
		return false
	}
	cut := len(a.calls) == 0 && (a.got.prose() != "" || len(a.malformed) > 0)
	if !cut || a.continuations >= a.cfg.Retry.MaxContinuations {
		a.dropMalformed() // The cut explains them.
		return false
	}
	a.continuations++
	a.dropMalformed()
	a.again(continueCut)
	return true
}

// keepMalformed puts malformed calls where the model wrote them, if they are wanted.
func (a *ask) keepMalformed() {
	if !a.req.KeepMalformed {
		return
	}
	for i, call := range a.malformed {
		a.calls = slices.Insert(a.calls, a.places[i], call)
		a.listen(Delta{Type: DeltaCallReady, CallID: call.ID, Name: call.Name, Arguments: call.Arguments})
	}
}

func (a *ask) dropMalformed() {
	if a.req.KeepMalformed {
		for i := range a.malformed {
			a.cancelMalformed(&a.malformed[i])
		}
	}
	a.malformed, a.places = nil, nil
}

func (a *ask) cancelMalformed(c *abi.ToolCall) {
	a.listen(Delta{Type: DeltaCallCancel, CallID: c.ID, Name: c.Name, Text: "its arguments are not JSON"})
}

// again makes the next request continue from the text so far.
func (a *ask) again(wish string) {
	AddUsage(&a.usage, &a.got.usage)
	a.got.usage, a.got.stop = abi.Usage{}, ""
	a.got.keepText()
	a.suffix = nil
	text := a.got.prose()
	if text == "" {
		a.got.Content = nil
		if wish == continueBroken {
			return
		}
	} else {
		a.suffix = append(a.suffix, abi.Message{ID: a.freshID("partial"), Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text(text)}})
	}
	a.suffix = append(a.suffix, abi.Message{
		ID: a.freshID("continue"), Role: abi.RoleUser, Visibility: abi.VisibilityInternal, Content: []abi.ContentBlock{abi.Text(wish)},
	})
}

// freshID makes an id that no message of the request has.
func (a *ask) freshID(word string) string {
	id := "_" + word
	for slices.ContainsFunc(a.req.Messages, func(m abi.Message) bool { return m.ID == id }) {
		id = "_" + id
	}
	return id
}

// recover takes up an answer that broke off: it is done if calls are complete,
// continues from the text if there is some, and else begins anew.
func (a *ask) recover(ctx context.Context, cause error) error {
	a.save(ctx)
	stalled := errors.Is(cause, errStall)
	a.plan(reason(cause))
	if a.over {
		return nil
	}
	failure, _ := errors.AsType[*Error](cause)
	delay := a.cfg.Retry.Delay(a.recoveries-1, failure)
	if stalled {
		delay = stallDelay
	}
	a.cfg.Logger.WarnContext(ctx, "stream is taken up again", "run_id", a.req.RunID, "reason", reason(cause), "delay", delay)
	return sleep(ctx, delay)
}

// plan decides how to continue an answer that broke off.
func (a *ask) plan(why string) {
	var complete, begun []PartialCall
	for _, c := range a.got.Calls {
		if _, err := decodeArguments(c.Arguments); c.Done && err == nil {
			complete = append(complete, c)
		} else {
			begun = append(begun, c)
		}
	}
	for _, c := range begun {
		if len(complete) > 0 {
			a.lost = append(a.lost, abi.ToolCall{ID: c.ID, Name: c.Name})
		}
		a.listen(Delta{Type: DeltaCallCancel, CallID: c.ID, Name: c.Name, Text: why})
	}
	switch {
	case len(complete) > 0:
		a.got.Calls, a.got.stop, a.over = complete, abi.StopToolUse, true
		a.settle()
	case a.got.prose() != "":
		a.again(continueBroken)
	default:
		a.listen(Delta{Type: DeltaReset, Text: why})
		a.again(continueBroken)
	}
}

// reason says in a few words why an answer broke off.
func reason(err error) string {
	failure, _ := errors.AsType[*Error](err)
	switch {
	case errors.Is(err, errStall):
		return "idle stall"
	case failure == nil || failure.Kind == KindStreamInterrupted:
		return "connection reset"
	default:
		return fmt.Sprintf("provider %s mid-stream", failure.kind())
	}
}

// key is under which name the answer is kept while it comes.
func (a *ask) key() string { return fmt.Sprintf("%s/%d", a.req.RunID, a.req.Step) }

func (a *ask) keeps() bool { return a.cfg.Partials != nil && a.req.RunID != "" }

// takeUp continues from what an earlier process left.
func (a *ask) takeUp(ctx context.Context) {
	if !a.keeps() {
		return
	}
	saved, ok, err := a.cfg.Partials.LoadPartial(ctx, a.key())
	if err != nil {
		a.cfg.Logger.WarnContext(ctx, "answer under way cannot be read", "run_id", a.req.RunID, "error", err)
	}
	if !ok || err != nil || len(saved.Content)+len(saved.Calls) == 0 {
		return
	}
	a.got.Partial = Partial{Content: slices.Clone(saved.Content), Calls: slices.Clone(saved.Calls)}
	a.plan("resumed from checkpoint")
}

func (a *ask) save(ctx context.Context) {
	if !a.keeps() || len(a.got.Content)+len(a.got.Calls) == 0 {
		return
	}
	if err := a.cfg.Partials.SavePartial(ctx, a.key(), a.got.snapshot()); err != nil {
		a.cfg.Logger.WarnContext(ctx, "answer under way cannot be kept", "run_id", a.req.RunID, "error", err)
	}
}

func (a *ask) forget(ctx context.Context) {
	if !a.keeps() {
		return
	}
	if err := a.cfg.Partials.DeletePartial(context.WithoutCancel(ctx), a.key()); err != nil {
		a.cfg.Logger.WarnContext(ctx, "answer under way cannot be deleted", "run_id", a.req.RunID, "error", err)
	}
}
