package compaction

import (
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// droppedText is the text of a message whose content retention has dropped.
const droppedText = "[dropped by retention]"

// maxDropped is how many messages one [State.Drop] drops at most.
const maxDropped = 1000

// Drop drops the content of messages among the first n of a log: those that the newest marker covers and that no view shows. It returns their
// places, and the log with messages that have their ids and roles alone in their stead, so that each message keeps its place. The given log is not
// changed. Rounds of calls and results are dropped whole. Markers whose undo would show what is dropped can no longer be undone. While a
// compaction is under way nothing is dropped.
func (s *State) Drop(log []abi.Message, n int) (places []int, rest []abi.Message) {
	if len(s.Markers) == 0 || s.InFlight != nil {
		return nil, log
	}
	x := unweighed(log)
	hidden, ok := x.hidden(&s.Markers[len(s.Markers)-1])
	if !ok {
		return nil, log
	}
	open := x.unanswered(log)
	places = x.droppable(log, n, func(i int) bool { return hidden(i) && !open[i] })
	if len(places) > maxDropped {
		places = x.droppable(log, places[maxDropped], func(i int) bool { return hidden(i) && !open[i] })
	}
	if len(places) == 0 {
		return nil, log
	}
	rest = slices.Clone(log)
	for _, i := range places {
		rest[i] = abi.Message{ID: log[i].ID, Role: log[i].Role, Visibility: abi.VisibilityInternal, Content: []abi.ContentBlock{abi.Text(droppedText)}}
	}
	for len(s.Markers) > 1 && !x.hides(&s.Markers[0], places) {
		s.Markers = s.Markers[1:]
	}
	s.Forgot = true
	s.Dropped += len(places)
	return places, rest
}

// isDropped reports whether retention has dropped the content of a message.
func isDropped(m *abi.Message) bool {
	return m.Visibility == abi.VisibilityInternal && len(m.Content) == 1 && m.Content[0].Text == droppedText
}

// droppable lists the messages before limit that may be dropped, up to where a round ends.
func (x *index) droppable(log []abi.Message, limit int, may func(i int) bool) (places []int) {
	for i := range x.boundary(0, min(limit, len(log))) + 1 {
		if may(i) && !isDropped(&log[i]) {
			places = append(places, i)
		}
	}
	return places
}

// hidden returns which messages are not in the view under a marker. It reports false if the marker is not in the log.
func (x *index) hidden(m *Marker) (func(i int) bool, bool) {
	c, ok := x.covered(m)
	return func(i int) bool {
		_, kept := slices.BinarySearch(c.keep, i)
		return i >= c.from && i <= c.to && !kept
	}, ok
}

// hides reports whether none of these messages is in the view under a marker.
func (x *index) hides(m *Marker, places []int) bool {
	hidden, ok := x.hidden(m)
	return ok && !slices.ContainsFunc(places, func(i int) bool { return !hidden(i) })
}

// unanswered has the messages with a call that has no result yet, and the results of their other calls: a result that comes later is in the
// view together with them.
func (x *index) unanswered(log []abi.Message) map[int]bool {
	answered := map[string]bool{}
	for i := range log {
		if log[i].Role == abi.RoleTool {
			answered[log[i].ToolCallID] = true
		}
	}
	out := map[int]bool{}
	for i := range log {
		if slices.ContainsFunc(log[i].ToolCalls, func(c abi.ToolCall) bool { return !answered[c.ID] }) {
			out[i] = true
		}
	}
	for i := range x.entries {
		if call := x.entries[i].call; call >= 0 && out[call] {
			out[i] = true
		}
	}
	return out
}
