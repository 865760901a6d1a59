package anthropic

import (
	"slices"

	sdk "github.com/anthropics/anthropic-sdk-go"
)

// latestTurns is the number of user turns, from the end, that get a breakpoint. The last user turn of one step is the
// last but one of the next, which therefore reads what the former wrote.
const latestTurns = 2

// breakpoints sets cache breakpoints, of which the API accepts four.
func (q *request) breakpoints(turns []turn, summary *sdk.ContentBlockParamUnion) {
	mark := sdk.NewCacheControlEphemeralParam()
	switch system, tools := q.params.System, q.params.Tools; {
	case len(system) > 0:
		system[len(system)-1].CacheControl = mark
	case len(tools) > 0:
		tools[len(tools)-1].OfTool.CacheControl = mark
	}
	if summary != nil {
		*summary.GetCacheControl() = mark
	}
	left := latestTurns
	for i := range slices.Backward(turns) {
		if end := turns[i].end(); end != nil && left > 0 {
			*end.GetCacheControl() = mark
			left--
		}
	}
}

// end returns the last block of a user turn that later requests repeat, or nil.
func (t *turn) end() *sdk.ContentBlockParamUnion {
	switch {
	case t.role != sdk.MessageParamRoleUser:
		return nil
	case len(t.blocks) > 0:
		return &t.blocks[len(t.blocks)-1]
	case len(t.results) > 0:
		return &t.results[len(t.results)-1]
	default:
		return nil
	}
}
