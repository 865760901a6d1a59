package gc

import (
	"cmp"
	"slices"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/talk"
)

// Policy is the name under which a module offers this package.
const Policy = "gc"

const (
	// least is the least of an output or argument that is worth a mask, in bytes.
	least = 400
	// maskBytes is about how long a mask is.
	maskBytes = 110
)

// Summarize masks what need not be read, or declines.
func Summarize(req *mortise.SummarizeRequest) (*mortise.Summary, error) {
	s := &mortise.Summary{Policy: Policy}
	if req.Masking == nil {
		s.Declined = "this host does not mask messages"
		return s, nil
	}
	per := mortise.FloatOr(req.Config, "bytes_per_token", talk.BytesPerToken)
	if !(per >= 1 && per <= 8) {
		per = talk.BytesPerToken
	}
	view := float64(req.Masking.ViewTokens)
	for _, f := range find(req.Messages, req.Masking) {
		if f.mask.Reason == mortise.MaskRefetchable && view <= float64(req.Masking.GoalTokens) {
			break
		}
		s.Masks = append(s.Masks, f.mask)
		view -= float64(f.bytes-maskBytes) / per
	}
	alone := mortise.BoolOr(req.Config, "alone", false)
	if len(s.Masks) == 0 || view > float64(req.Masking.GoalTokens) && !alone {
		s.Declined = "masks of " + plural(len(s.Masks), "output") + " would leave a context of " + talk.Number(int(view)) + " tokens, " +
			talk.Number(int(req.Masking.GoalTokens)) + " are wanted"
		s.Masks = nil
		return s, nil
	}
	s.FromID, s.ToID = talk.Span(req.Messages)
	return s, nil
}

func plural(n int, what string) string {
	if n != 1 {
		what += "s"
	}
	return talk.Number(n) + " " + what
}

// found is what may be masked.
type found struct {
	mask  mortise.Mask
	bytes int
	at    int
}

// find lists what may be masked: first what is dead, then what can be read again, each from the oldest on.
func find(list []mortise.Message, m *mortise.Masking) []found {
	masked := map[mortise.Mask]bool{}
	for _, k := range m.Masked {
		masked[mortise.Mask{MessageID: k.MessageID, CallID: k.CallID}] = true
	}
	h := read(list)
	var out []found
	for i := range h.uses {
		u := &h.uses[i]
		if slices.Contains(m.Never, u.call.Name) {
			continue
		}
		f, ok := h.dead(i)
		if !ok {
			f, ok = u.again()
		}
		id := mortise.Mask{MessageID: f.mask.MessageID, CallID: f.mask.CallID}
		if ok && f.bytes >= least && id.MessageID != "" && !masked[id] && !list[f.at].Pinned {
			out = append(out, f)
		}
	}
	slices.SortStableFunc(out, func(a, b found) int {
		return cmp.Or(cmp.Compare(order(a.mask.Reason), order(b.mask.Reason)), a.at-b.at)
	})
	return out
}

// order is which reasons come first.
func order(r mortise.MaskReason) int {
	if r == mortise.MaskRefetchable {
		return 1
	}
	return 0
}

// dead reports an output that a later one replaces, or arguments that failed.
func (h *history) dead(i int) (found, bool) {
	u := &h.uses[i]
	if u.failed {
		return h.input(i)
	}
	// What has the newer content is the better reason.
	for _, rule := range []struct {
		reason  mortise.MaskReason
		applies func(u, later *use) bool
	}{{mortise.MaskSuperseded, supersedes}, {mortise.MaskDuplicate, repeats}, {mortise.MaskInvalidated, changes}} {
		for j := i + 1; j < len(h.uses); j++ {
			if later := &h.uses[j]; !later.failed && rule.applies(u, later) {
				return u.output(rule.reason, later), true
			}
		}
	}
	return found{}, false
}

func supersedes(u, later *use) bool {
	return u.does == doesRead && later.does == doesRead && later.covers(u)
}

func repeats(u, later *use) bool {
	return len(u.text) >= least && u.text == later.text && u.blocks == 0 && later.blocks == 0
}

func changes(u, later *use) bool {
	return u.does == doesRead && u.file != "" && later.does == doesEdit && slices.Contains(later.files, u.file)
}

func (u *use) output(r mortise.MaskReason, by *use) found {
	return found{mask: mortise.Mask{MessageID: u.id, Reason: r, By: by.id}, bytes: len(u.text), at: u.at}
}

// again reports an output that can be read again.
func (u *use) again() (found, bool) {
	f := found{mask: mortise.Mask{MessageID: u.id, Reason: mortise.MaskRefetchable}, bytes: len(u.text), at: u.at}
	return f, u.does == doesRead && !u.failed
}

// input reports the arguments of a change that failed, if a later change of the file did not: those that were not
// tried again may be worth reading, as a plan is that the user wants to be different.
func (h *history) input(i int) (found, bool) {
	u := &h.uses[i]
	n := longest(u.call.Arguments)
	if u.does != doesEdit || u.refused || u.thought || n < least || u.call.ID == "" {
		return found{}, false
	}
	for j := i + 1; j < len(h.uses); j++ {
		later := &h.uses[j]
		if later.failed || later.does != doesEdit || !slices.ContainsFunc(u.files, func(f string) bool { return slices.Contains(later.files, f) }) {
			continue
		}
		return found{mask: mortise.Mask{MessageID: u.asked, CallID: u.call.ID, Reason: mortise.MaskFailedInput, By: later.id}, bytes: n, at: u.askedAt}, true
	}
	return found{}, false
}

// longest sums up the long texts of arguments.
func longest(v any) int {
	n := 0
	switch v := v.(type) {
	case map[string]any:
		for _, e := range v {
			n += longest(e)
		}
	case []any:
		for _, e := range v {
			n += longest(e)
		}
	case string:
		if len(v) >= least && !strings.HasPrefix(strings.TrimSpace(v), "{") {
			return len(v)
		}
	}
	return n
}
