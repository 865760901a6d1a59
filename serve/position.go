package serve

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// position is a place in the events of a run: after an event of a dispatch. The zero position is
// the beginning.
type position struct {
	// dispatch is mailbox.Dispatch.Seq, event mailbox.Event.Seq.
	dispatch, event uint64
}

// ended is the event of a position after the last event of a run.
const ended = math.MaxUint64

// String is the id of an event on the wire.
func (p position) String() string {
	if p.event == ended {
		return fmt.Sprintf("%d-end", p.dispatch)
	}
	return fmt.Sprintf("%d-%d", p.dispatch, p.event)
}

// parsePosition reads the id of an event. The empty one is the beginning.
func parsePosition(id, field string) (p position, err error) {
	if id == "" {
		return p, nil
	}
	dispatch, event, _ := strings.Cut(id, "-")
	p.dispatch, err = strconv.ParseUint(dispatch, 10, 64)
	switch {
	case err != nil:
	case event == "end":
		p.event = ended
	default:
		p.event, err = strconv.ParseUint(event, 10, 63)
	}
	if err != nil {
		return p, problem(422, "it is not the id of an event", "use the id of an event of this run").about(field)
	}
	return p, nil
}
