package mailbox

import (
	"strings"
	"time"
)

// text makes valid UTF-8 without NUL of what a model, a tool or a runtime has said: not every store keeps the rest, and a settlement
// that none can keep would have the run carried out again.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// clip bounds a text that is kept with a record.
func clip(s string) string {
	const most = 4096
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return text(s)
}

// kept is the result as stores keep it.
func (r Result) kept() Result {
	r.Termination, r.Response, r.Error, r.Wait = text(r.Termination), text(r.Response), text(r.Error), text(r.Wait)
	if r.WaitUntil = milli(r.WaitUntil); r.WaitUntil.Year() > maxYear {
		r.WaitUntil = time.Time{} // for ever
	}
	return r
}
