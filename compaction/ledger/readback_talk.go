package ledger

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// statement reads the statements of one message.
func (r *reader) statement(it *item) {
	m, rest, ok := handle(it.text)
	by, quotes, isSaid := strings.Cut(rest, ": "+openQuote)
	if !ok || !isSaid {
		return
	}
	for q := range strings.SplitSeq(quotes, closeQuote+betweenQuotes+openQuote) {
		t := abi.LedgerText{Message: m, By: by}
		text, tail := q, ""
		if i := strings.LastIndex(q, closeQuote); i >= 0 {
			text, tail = q[:i], q[i+len(closeQuote):]
		}
		t.Text = text
		if earlier, ok := strings.CutPrefix(tail, " (earlier: "); ok {
			t.Replaces, _, _ = handle(strings.TrimSuffix(earlier, ")"))
			t.Kind = saidChange
		}
		r.s.Talk.Statements = append(r.s.Talk.Statements, t)
	}
}

// values reads a record.
func (r *reader) values(it *item) {
	head, list, ok := strings.Cut(it.text, "): ")
	i := strings.LastIndex(head, " (m")
	if !ok || i < 0 {
		return
	}
	m, _, ok := handle(head[i+2:])
	if !ok {
		return
	}
	for one := range strings.SplitSeq(list, "; ") {
		key, value, ok := strings.Cut(one, " ")
		if !ok {
			continue
		}
		v := abi.LedgerValue{Message: m, Owner: head[:i], Key: key, Value: value}
		if now, before, ok := strings.Cut(value, " (was "); ok {
			v.Value, v.Before = now, strings.TrimSuffix(before, ")")
		}
		r.s.Work.Values = append(r.s.Work.Values, v)
	}
}
