package agui

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Event is an event of the protocol.
type Event map[string]any

// ProtocolVersion is the version of the protocol that the events are of.
const ProtocolVersion = "1.0"

// prefix begins the names of custom events that represent an event without a word in the protocol.
const prefix = "mortise."

// maxHeld is how many custom events are kept between the end of a run that waits and its continuation.
const maxHeld = 1000

// Translator translates the events of one run, in their order. Its events can be verified from any point on: see [Translator.Resume].
type Translator struct {
	// Thread and Run are the ids that the events have.
	Thread, Run string

	live  bool // a run was started, and did not finish
	usage abi.Usage
	// held are custom events that came when no run was started.
	held []Event

	step    string // the open step
	message string // of the step
	resets  int    // how often the answer of the step began anew
	// text and reasoning are the ids of the messages that are open.
	text, reasoning string
	calls           []call
}

// call is a tool call of the step.
type call struct {
	id, name string
	open     bool
	argued   bool // some of its arguments were sent
}

// Resume begins the stream of a client that has had everything up to here, and whose verifier begins anew.
func (t *Translator) Resume() (out []Event) {
	if !t.live {
		return nil
	}
	out = append(out, t.started())
	if t.step != "" {
		out = append(out, Event{"type": "STEP_STARTED", "stepName": t.step})
	}
	if t.reasoning != "" {
		out = append(out, reasoningStart(t.reasoning)...)
	}
	if t.text != "" {
		out = append(out, textStart(t.text))
	}
	for _, c := range t.calls {
		if c.open {
			out = append(out, t.callStart(c))
		}
	}
	return out
}

// Live reports whether a run was started, and did not finish.
func (t *Translator) Live() bool { return t.live }

// Events translates one event. Events that wait for the run to continue come with a later one.
func (t *Translator) Events(name string, f Fields) []Event {
	in := read(f)
	out := t.translate(name, &in, f)
	if !in.At.IsZero() {
		for _, e := range out {
			if e["timestamp"] == nil {
				e["timestamp"] = in.At.UnixMilli()
			}
		}
	}
	return out
}

func (t *Translator) translate(name string, in *input, f Fields) []Event {
	switch name {
	case "run_started":
		return t.runStarted(f)
	case "run_waiting":
		return t.runWaiting(in, f)
	case "run_ended":
		t.usage = in.Outcome.Usage
	case "settled":
		return t.settled(in)
	case "step_started":
		return t.begin(t.stepStarted(in))
	case "step_ended":
		return t.begin(t.stepEnded(f))
	case "text_delta", "reasoning_delta", "reasoning_encrypted_value", "stream_reset":
		return t.begin(t.answer(name, in, f))
	case "tool_call_started", "tool_call_delta", "tool_call_ready", "tool_call_cancelled", "tool_result", "tool_waiting", "tool_call_resumed":
		return t.begin(t.toolCall(name, in, f))
	case "state_snapshot", "state_delta", "messages_snapshot", "activity_snapshot", "activity_delta":
		return t.begin(snapshot(name, in))
	case "gap": // the ends of what is open may be among what is lost
		return t.begin(append(t.close(), custom(name, f)))
	}
	e := custom(name, f)
	if name == "custom" {
		e = Event{"type": "CUSTOM", "name": in.Name, "value": in.Payload, "metadata": map[string]any{"by": in.By}}
	}
	if !t.live {
		t.held = append(t.held[max(0, len(t.held)-maxHeld):], stamped(e, in.At))
		return nil
	}
	return []Event{e}
}

// stamped gives an event that is sent later its time.
func stamped(e Event, at time.Time) Event {
	if !at.IsZero() {
		e["timestamp"] = at.UnixMilli()
	}
	return e
}

// custom is an event without a word in the protocol.
func custom(name string, f Fields) Event {
	return Event{"type": "CUSTOM", "name": prefix + name, "value": f}
}

// begin starts a run for events that need one.
func (t *Translator) begin(list []Event) []Event {
	if len(list) == 0 {
		return nil
	}
	return append(t.start(), list...)
}

// start starts a run unless there is one.
func (t *Translator) start() []Event {
	if t.live {
		return nil
	}
	out := append([]Event{t.started()}, t.held...)
	t.live, t.held = true, nil
	return out
}

func (t *Translator) started() Event {
	return Event{"type": "RUN_STARTED", "threadId": t.Thread, "runId": t.Run, "protocolVersion": ProtocolVersion}
}

// runStarted is the start of an execution. Within a run it is another attempt, or the run continues without having asked the
// client.
func (t *Translator) runStarted(f Fields) []Event {
	if t.live {
		return append(t.close(), custom("run_started", f))
	}
	out := t.start()
	out[0]["rawEvent"] = f
	return out
}

// runWaiting ends a run that asks for decisions. One that waits for background tasks continues by itself.
func (t *Translator) runWaiting(in *input, f Fields) []Event {
	if len(in.Outcome.Tickets) == 0 {
		return t.begin(append(t.close(), custom("run_waiting", f)))
	}
	asked := make([]any, 0, len(in.Outcome.Tickets))
	for i := range in.Outcome.Tickets {
		asked = append(asked, interrupt(&in.Outcome.Tickets[i]))
	}
	out := t.begin(append(t.close(), t.finished(in.Outcome.Usage, Event{
		"outcome": Event{"type": "interrupt", "interrupts": asked}, "rawEvent": f,
	})))
	t.live = false
	return out
}

// interrupt asks for a decision.
func interrupt(k *ticket) Event {
	e := Event{"id": k.ID, "reason": "tool_call", "toolCallId": k.Call.ID, "metadata": map[string]any{"mortise": k}}
	if text := cmp.Or(k.Message, k.Reason); text != "" {
		e["message"] = text
	}
	e["responseSchema"] = k.ResponseSchema
	if _, ok := k.ResponseSchema.(map[string]any); !ok {
		e["responseSchema"] = approval()
	}
	return e
}

// approval is the schema of the answer to a ticket that has none.
func approval() any {
	return map[string]any{
		"type": "object", "required": []string{"approved"},
		"properties": map[string]any{"approved": map[string]any{"type": "boolean"}, "reason": map[string]any{"type": "string"}},
	}
}

func (t *Translator) finished(u abi.Usage, more Event) Event {
	e := Event{"type": "RUN_FINISHED", "threadId": t.Thread, "runId": t.Run}
	maps.Copy(e, more)
	if list := usage(u); list != nil {
		e["usage"] = list
	}
	return e
}

// usage lists the tokens of a run.
func usage(u abi.Usage) []any {
	e := map[string]any{}
	for name, n := range map[string]int64{
		"inputTokens": u.PromptTokens, "outputTokens": u.CompletionTokens, "totalTokens": u.TotalTokens,
		"reasoningTokens": u.ThinkingTokens, "cachedInputTokens": u.CacheReadTokens, "cacheWriteInputTokens": u.CacheCreationTokens,
	} {
		if n > 0 {
			e[name] = n
		}
	}
	if len(e) == 0 {
		return nil
	}
	return []any{e}
}

// settled ends the run for good.
func (t *Translator) settled(in *input) []Event {
	out := append(t.close(), t.end(in))
	out = t.begin(out)
	t.live = false
	return out
}

func (t *Translator) end(in *input) Event {
	kind := "success"
	switch {
	case in.Termination == string(abi.TerminationCancelled):
		kind = "cancelled"
	case in.Error != "" || in.Termination == string(abi.TerminationFailed):
		return Event{"type": "RUN_ERROR", "message": cmp.Or(in.Error, "the run failed"), "code": cmp.Or(in.Termination, "error")}
	}
	return t.finished(t.usage, Event{
		"outcome": Event{"type": kind},
		"result":  map[string]any{"status": in.Status, "termination": in.Termination, "output": in.Output},
	})
}

func (t *Translator) stepStarted(in *input) []Event {
	out := t.close()
	t.step, t.message, t.resets, t.calls = fmt.Sprintf("step %d", in.Step), in.MessageID, 0, nil
	return append(out, Event{"type": "STEP_STARTED", "stepName": t.step})
}

func (t *Translator) stepEnded(f Fields) []Event {
	if t.step == "" { // its start is lost
		return append(t.close(), custom("step_ended", f))
	}
	out := t.close()
	out[len(out)-1]["rawEvent"] = f
	return out
}

// close ends what is open: messages, calls, and the step.
func (t *Translator) close() []Event {
	out := t.closeAnswer()
	if t.step != "" {
		out = append(out, Event{"type": "STEP_FINISHED", "stepName": t.step})
	}
	t.step, t.calls = "", nil
	return out
}

func (t *Translator) closeAnswer() []Event {
	out := t.closeMessages()
	for i := range t.calls {
		if t.calls[i].open {
			t.calls[i].open = false
			out = append(out, Event{"type": "TOOL_CALL_END", "toolCallId": t.calls[i].id})
		}
	}
	return out
}

func (t *Translator) find(id string) *call {
	i := slices.IndexFunc(t.calls, func(c call) bool { return c.id == id })
	if i < 0 {
		return nil
	}
	return &t.calls[i]
}
