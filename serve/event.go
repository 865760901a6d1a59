package serve

import (
	"encoding/json"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
)

// Names of events that the server itself makes.
const (
	// eventGap means that events are not kept any more.
	eventGap = "gap"
	// eventSettled comes last, once.
	eventSettled = "settled"
)

// wireName is the name on the wire of an event of the run loop. Those that are missing keep
// theirs. Three depend on what is in the event, see frame.rename: the end of a run that waits is
// run_waiting, of one that another process continues run_interrupted, a result of a call that waits is tool_waiting, and a compaction is compaction_ and
// its kind.
func wireName(kind string) string {
	switch kind {
	case string(agent.EventRunStart):
		return "run_started"
	case string(agent.EventStepStart):
		return "step_started"
	case string(agent.EventInferenceComplete):
		return "usage"
	case string(agent.EventToolCallStart):
		return "tool_call_started"
	case string(agent.EventToolCallDone):
		return "tool_result"
	case string(agent.EventToolCallCancel):
		return "tool_call_cancelled"
	case string(agent.EventStepEnd):
		return "step_ended"
	case string(agent.EventRunFinish):
		return "run_ended"
	case mailbox.EventFailed:
		return "attempt_failed"
	case mailbox.EventRefused:
		return "refused"
	case mailbox.EventSkipped:
		return "skipped"
	default:
		return kind
	}
}

// frame is an event on the wire.
type frame struct {
	id   position
	name string
	data map[string]json.RawMessage
}

// place is what each event has.
type place struct {
	run, thread, dispatch string
	id                    position
}

// frameOf translates an event. It is false for one that is not of the run: the dispatch was
// replayed for another one, or it is about this process.
func frameOf(e mailbox.Event, at place) (f frame, ok bool) {
	f = frame{id: at.id, name: e.Type, data: map[string]json.RawMessage{}}
	switch e.Type {
	case mailbox.EventFailed, mailbox.EventRefused:
		f.put("detail", string(e.Data))
	case mailbox.EventSkipped:
		f.put("skipped", wireName(string(e.Data)))
	default:
		if json.Unmarshal(e.Data, &f.data) != nil || f.data == nil {
			f.data = map[string]json.RawMessage{}
		}
	}
	if run := f.text("run_id"); run != "" && run != at.run {
		return f, false
	}
	f.name = f.rename(e.Type)
	f.place(at)
	return f, true
}

// waitingName is the event of a run that waits.
const waitingName = "run_waiting"

// rename chooses the name on the wire, and drops what says the same.
func (f *frame) rename(kind string) string {
	switch kind {
	case mortise.EventCompaction:
		kind = "compaction_" + f.text("kind")
		f.drop("kind", "thread")
		return kind
	case string(agent.EventRunFinish):
		f.move("result_of_run", "outcome")
		switch {
		case f.inner("outcome", "status") == string(agent.StatusWaiting):
			return waitingName
		case f.continued():
			return "run_interrupted"
		}
	case string(agent.EventToolCallDone):
		if f.inner("result", "status") == "pending" {
			return "tool_waiting"
		}
	}
	return wireName(kind)
}

func (f *frame) place(at place) {
	f.drop("event_type")
	f.put("type", f.name)
	f.put("id", at.id.String())
	if at.id.event != ended {
		f.put("seq", at.id.event)
	}
	f.put("run_id", at.run)
	f.put("thread_id", at.thread)
	if at.dispatch != "" {
		f.put("dispatch_id", at.dispatch)
	}
}

func (f *frame) put(name string, v any) {
	if data, err := json.Marshal(v); err == nil {
		f.data[name] = data
	}
}

func (f *frame) drop(names ...string) {
	for _, name := range names {
		delete(f.data, name)
	}
}

func (f *frame) move(from, to string) {
	if v, ok := f.data[from]; ok {
		f.data[to] = v
		delete(f.data, from)
	}
}

func (f *frame) text(name string) (s string) {
	_ = json.Unmarshal(f.data[name], &s) // what is no text is empty
	return s
}

// inner is a text of an object in the event.
func (f *frame) inner(object, name string) (s string) {
	var fields map[string]json.RawMessage
	if json.Unmarshal(f.data[object], &fields) == nil {
		_ = json.Unmarshal(fields[name], &s) // what is no text is empty
	}
	return s
}

// continued reports whether a run ended in one process alone.
func (f *frame) continued() bool {
	var outcome agent.Result
	return json.Unmarshal(f.data["outcome"], &outcome) == nil && outcome.Termination.Code == agent.Continued
}

// gapFrame reports that the events up to a position are not kept.
func gapFrame(at place, messages string) frame {
	f := frame{id: at.id, name: eventGap, data: map[string]json.RawMessage{}}
	f.place(at)
	f.put("messages", messages)
	return f
}

// finishFrame is run_ended or run_waiting, of a run whose own event of that is lost.
func finishFrame(run mailbox.Run, r agent.Record, at place) frame {
	f := frame{id: at.id, name: wireName(string(agent.EventRunFinish)), data: map[string]json.RawMessage{}}
	outcome := agent.Result{
		RunID: at.run, Response: run.Response, Termination: r.Termination, Status: r.Status, StatusReason: r.Reason, Steps: r.Steps, Usage: r.Usage,
	}
	if run.Status == mailbox.RunWaiting {
		f.name = waitingName
	}
	if r.Waiting != nil {
		outcome.Tickets = r.Waiting.Tickets
	}
	f.place(at)
	f.put("at", run.UpdatedAt.UTC().Format(time.RFC3339Nano))
	f.put("outcome", outcome)
	return f
}

// settledFrame ends the events of a run.
func settledFrame(run mailbox.Run, at place) frame {
	f := frame{id: at.id, name: eventSettled, data: map[string]json.RawMessage{}}
	at.dispatch = run.Dispatch
	f.place(at)
	f.put("at", run.FinishedAt.UTC().Format(time.RFC3339Nano))
	f.put("status", run.Status)
	f.put("termination", run.Termination)
	if run.Response != "" {
		f.put("output", run.Response)
	}
	if run.Error != "" {
		f.put("error", run.Error)
	}
	return f
}
