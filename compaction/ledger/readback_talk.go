package ledger

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// statement reads the statements of one message, of the speaker that it names if none is given.
func (r *reader) statement(it *item, by string) {
	m, list, ok := handle(it.text)
	if by == "" {
		var named bool
		by, list, named = strings.Cut(list, ": ")
		ok = ok && named
	}
	if !ok {
		return
	}
	for text := range strings.SplitSeq(list, betweenSaid) {
		t := abi.LedgerText{Message: m, By: by, Text: text}
		if before, earlier, ok := strings.Cut(text, " (earlier: "); ok {
			t.Text, t.Kind = before, saidChange
			t.Replaces, _, _ = handle(strings.TrimSuffix(earlier, ")"))
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
