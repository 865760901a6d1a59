package plugin

import mortise "github.com/mortise-dev/mortise/sdk/go"

// spare is room for the event of the first call, which after that is never used again.
// Where the host puts memory back, every call is a first one.
var spare = new(mortise.Event)

// newEvent returns room for an event.
func newEvent() *mortise.Event {
	event := spare
	if event == nil {
		return new(mortise.Event)
	}
	spare = nil
	return event
}
