package mailbox

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
	"unicode/utf8"
)

// text makes valid UTF-8 without NUL: not every store keeps the rest, and a settlement that none can keep would have the run executed
// again.
func text(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// clip bounds a text that is kept with a record.
func clip(s string) string {
	return cut(s, 4096)
}

func cut(s string, most int) string {
	if len(s) > most {
		s = strings.ToValidUTF8(s[:most], "")
	}
	return text(s)
}

// storable is the result as stores keep it.
func (r Result) storable() Result {
	r.Termination, r.Response, r.Error, r.Wait = text(r.Termination), text(r.Response), text(r.Error), text(r.Wait)
	if r.WaitUntil = milli(r.WaitUntil); r.WaitUntil.Year() > maxYear {
		r.WaitUntil = time.Time{} // for ever
	}
	r.Tickets = slices.Clone(r.Tickets[:min(len(r.Tickets), maxTickets)])
	for i := range r.Tickets {
		k := &r.Tickets[i]
		for _, s := range []*string{&k.ID, &k.Call, &k.Tool, &k.Action, &k.Message, &k.By} {
			*s = cut(*s, maxTicketText)
		}
	}
	if math.IsNaN(r.Totals.Cost) || math.IsInf(r.Totals.Cost, 0) {
		r.Totals.Cost = 0
	}
	return r
}

// maxID bounds ids, keys and owners, in bytes.
const maxID = 256

// checkID refuses a text that is no id.
func checkID(name, id string) error {
	if !validID(id) {
		return fmt.Errorf("%w: the %s must be UTF-8 without NUL, at most %d bytes", ErrInvalid, name, maxID)
	}
	return nil
}

func validID(id string) bool {
	return len(id) <= maxID && utf8.ValidString(id) && !strings.ContainsRune(id, 0)
}

// tooLarge refuses what has more bytes than it may have. Field is the one of mailbox.Limits that bounds it.
func tooLarge(what string, n, most int, field, hint string) error {
	if n <= most {
		return nil
	}
	return fmt.Errorf("%w: %w: the %s has %d bytes, and Limits.%s is %d; %s, or raise that", ErrInvalid, ErrTooLarge, what, n, field, most, hint)
}

// fitsRequest refuses a request that is too large.
func (l bounds) fitsRequest(n int) error {
	return tooLarge("request", n, l.request, "Request", "keep large data elsewhere and send a reference")
}

// fitsCommit refuses what an execution writes at once and that is too large.
func (l bounds) fitsCommit(n int) error {
	return tooLarge("commit", n, l.commit, "Commit", "write less at a time, or keep large data elsewhere")
}

// bytes is what a commit writes, besides names.
func (c *Commit) bytes() int {
	n := len(c.Image) + len(c.Data) + c.Result.bytes()
	for _, list := range [][]Message{c.Append, c.Replace} {
		for i := range list {
			n += len(list[i].ID) + len(list[i].Run) + len(list[i].Data)
		}
	}
	return n
}

// bytes is the size of a result.
func (r Result) bytes() int { return len(r.Termination) + len(r.Response) + len(r.Error) + len(r.Wait) }
