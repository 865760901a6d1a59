package serve

import "github.com/mortise-dev/mortise/mailbox"

// EventOf translates an event of a dispatch, for programs that read a run's events from the
// mailbox. It is false for one that clients do not receive.
func EventOf(e mailbox.Event, d mailbox.Dispatch) (Event, bool) {
	if e.Type == mailbox.EventSettled {
		return Event{}, false
	}
	f, ok := frameOf(e, placeOf(d, e.Seq))
	if !ok {
		return Event{}, false
	}
	return f.event(), true
}

// SettledOf is the last event of a run that is done. D is the latest dispatch of the run.
func SettledOf(run mailbox.Run, d mailbox.Dispatch) Event {
	return settledFrame(run, placeOf(d, ended)).event()
}

func placeOf(d mailbox.Dispatch, event uint64) place {
	return place{run: d.RunID, thread: d.Thread, dispatch: d.ID, id: position{dispatch: d.Seq, event: event}}
}

func (f frame) event() Event { return Event{ID: f.id.String(), Type: f.name, Fields: f.data} }
