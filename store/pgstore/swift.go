package pgstore

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mortise-dev/mortise/mailbox"
)

// swift makes a transition in one statement, if all that it looks at is remembered and the row of the thread still has the
// version of that. It says whether it did; if not, nothing was written.
func (s *Store) swift(ctx context.Context, thread string, need mailbox.Need, decide func(mailbox.State) (mailbox.Change, error)) (change mailbox.Change, done bool, err error) {
	v := s.recent.of(thread)
	if v == nil {
		return change, false, nil
	}
	now, ok := v.state(need)
	if !ok {
		return change, false, nil
	}
	change, err = decide(now.State)
	if err != nil || !simple(&now, change) || check(thread, v.head.Messages, change) != nil {
		return change, false, nil //nolint:nilerr // what changes nothing is decided on what is there
	}
	sql, args := swiftly(&now, v.xmin, change)
	var xmin *uint32
	err = s.once(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, s.sql(sql), args...).Scan(&xmin) })
	if err != nil || xmin == nil {
		s.recent.forget(thread)
		if again(err) || pgconn.SafeToRetry(err) {
			err = nil
		}
		return change, false, refusal(err)
	}
	s.recent.changed(*xmin, v.dispatches, v.runs, change, true)
	return change, true, nil
}

// simple says whether a change fits into one statement: it writes, makes nothing new but messages, and has no two parts
// of which the tables may want one before the other.
func simple(now *seen, c mailbox.Change) bool {
	if c.Head == nil || c.Drop || c.Image != nil || len(c.Dispatches) > 1 || len(c.Runs) > 1 {
		return false
	}
	for i := range c.Dispatches {
		if !now.dispatches[c.Dispatches[i].ID] {
			return false
		}
	}
	for i := range c.Runs {
		if _, known := now.data[c.Runs[i].ID]; !known {
			return false
		}
	}
	return true
}

// swiftly is the statement. Its parts depend on the first one, which writes the head if that has the version.
func swiftly(now *seen, xmin uint32, c mailbox.Change) (string, []any) {
	const there = ` AND EXISTS (SELECT FROM head)`
	args := append(headArgs(c.Head), xmin)
	var sql strings.Builder
	fmt.Fprintf(&sql, "WITH head AS (%s AND xmin = $%d RETURNING xmin)", updateHead, len(args))
	part := func(name, statement string, more []any) {
		fmt.Fprintf(&sql, ", %s AS (%s)", name, shifted(statement, len(args)))
		args = append(args, more...)
	}
	for i := range c.Dispatches {
		part("dispatch", updateDispatch+there, dispatchArgs(&c.Dispatches[i]))
	}
	for i := range c.Runs {
		part("run", updateRun+there, runArgs(&c.Runs[i], changedData(now, &c.Runs[i])))
	}
	if len(c.Messages) > 0 {
		part("message", putMessagesHead+` WHERE EXISTS (SELECT FROM head)`+putMessagesTail, messageArgs(c.Head.Thread, c.Messages))
	}
	sql.WriteString(" SELECT (SELECT xmin FROM head)")
	return sql.String(), args
}

var parameter = regexp.MustCompile(`\$(\d+)`)

// shifted gives the parameters of a statement other numbers.
func shifted(statement string, by int) string {
	return parameter.ReplaceAllStringFunc(statement, func(p string) string {
		n, err := strconv.Atoi(p[1:])
		if err != nil {
			panic(err) // the expression takes digits only
		}
		return "$" + strconv.Itoa(n+by)
	})
}
