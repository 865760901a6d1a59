package mailbox

// hold names a claim, as its holder does.
type hold struct{ Thread, Dispatch, Token string }

// state is a dispatch as a transition left it, with its run and its thread, and the claim if the thread is claimed for it.
type state struct {
	Dispatch Dispatch
	Claim    *Claim
	Run      Run
	Thread   Thread
	// Repeated is set when what was to be queued was there already.
	Repeated bool
	// First is set when the claim is the first one of the dispatch.
	First bool
}

// Holds reports whether the dispatch has been claimed with the token and still is.
func (s state) Holds(token string) bool {
	return s.Claim != nil && s.Claim.Token == token && s.Claim.Dispatch == s.Dispatch.ID
}

// hold is the claim of a dispatch as its holder names it.
func (s state) hold() hold {
	return hold{Thread: s.Dispatch.Thread, Dispatch: s.Dispatch.ID, Token: s.Dispatch.Token}
}

// state describes a dispatch after what was put.
func (t *turn) state(id string) state {
	d := t.dispatches[id]
	s := state{Dispatch: d, Run: t.runs[d.RunID], Thread: t.thread, First: id != "" && id == t.first}
	if c := t.thread.Claim; c != nil {
		own := *c
		s.Thread.Claim = &own
		if c.Dispatch == id {
			s.Claim = &own
		}
	}
	return s
}
