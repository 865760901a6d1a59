package serve

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/agui"
	"github.com/mortise-dev/mortise/mailbox"
)

// formatAGUI is the format of the AG-UI protocol.
const formatAGUI = "ag-ui"

// errAsked ends a stream whose run asks for a decision.
var errAsked = errors.New("the run asks for a decision")

// aguiStream writes events of the AG-UI protocol. It is not safe for concurrent use.
type aguiStream struct {
	out       *sse
	translate agui.Translator
	view      view
	// fresh is set until the client has been sent something.
	fresh bool
	// settled waits until the store has the end of a dispatch.
	settled func(dispatch string)
}

func newAGUI(out *sse, run mailbox.Run, v view, settled func(dispatch string)) *aguiStream {
	id := run.ID
	if v.shownAs != "" {
		id = v.shownAs
	}
	return &aguiStream{out: out, translate: agui.Translator{Thread: run.Thread, Run: id}, view: v, fresh: true, settled: settled}
}

// from is where the stream begins to read: at the dispatch of the event after which the client wants to continue, since what is
// open there, as a message, was opened by earlier events.
func (a *aguiStream) from() position {
	if a.view.after.event == ended { // the run is not done
		return a.view.after
	}
	return position{dispatch: a.view.after.dispatch}
}

// had reports whether the client has an event.
func (a *aguiStream) had(id position) bool {
	after := a.view.after
	return id.dispatch < after.dispatch || id.dispatch == after.dispatch && id.event <= after.event && after.event > 0
}

func (a *aguiStream) send(f frame) error {
	if a.had(f.id) {
		a.translate.Events(f.name, f.data)
		return nil
	}
	var list []agui.Event
	if a.fresh {
		list, a.fresh = a.translate.Resume(), false
	}
	list = append(list, a.translate.Events(f.name, f.data)...)
	asked := a.view.untilAsked && f.name == waitingName && !a.translate.Live()
	if asked { // the client may answer at once, with further messages
		a.settled(f.text("dispatch_id"))
	}
	if err := a.out.sendAll(f.id, list); err != nil || !asked {
		return err
	}
	return errAsked
}

// sendAll sends what one event was translated to. The last one has its id, so that a client that is cut off before gets all of
// them again. They have no names: clients of the protocol look at the data.
func (o *sse) sendAll(id position, list []agui.Event) error {
	if len(list) == 0 {
		return nil
	}
	var buf bytes.Buffer
	for i, e := range list {
		data, err := json.Marshal(e)
		if err != nil {
			return err //nolint:wrapcheck // it cannot be: all of it was JSON
		}
		if i == len(list)-1 {
			fmt.Fprintf(&buf, "id: %s\n", id)
		}
		fmt.Fprintf(&buf, "data: %s\n\n", data)
	}
	return o.write(buf.Bytes())
}
