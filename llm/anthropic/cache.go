package anthropic

import (
	"slices"

	sdk "github.com/anthropics/anthropic-sdk-go"
)

// latestTurns is how many turns of the user, from the end, are breakpoints. The end of this step's request is the last
// but one of the next step's, so each step reads what the one before wrote.
const latestTurns = 2

// breakpoints sets those of the cache, of which the API takes four.
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

// end is the last block of a user's turn that the next request has as well, or nil.
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
