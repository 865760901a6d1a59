package pgstore

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/mortise-dev/mortise/mailbox"
)

// swift makes a transition in one statement, if all that it looks at is remembered and the row of the thread still has the
// version of that, or if it makes a thread that this process has never seen, and that is not there. It says whether it did; if not, nothing was
// written.
func (s *Store) swift(ctx context.Context, thread string, need mailbox.Need, decide func(mailbox.State) (mailbox.Change, error)) (change mailbox.Change, done bool, err error) {
	v := s.recent.of(thread)
	now, ok := s.believed(thread, v, need)
	if !ok {
		return change, false, nil
	}
	change, err = decide(now.State)
	if err != nil || !simple(&now, change) || check(thread, now.Head.Messages, change) != nil {
		return change, false, nil //nolint:nilerr // what changes nothing is decided on what is there
	}
	sql, args := s.swiftly(&now, change)
	var xmin *uint32
	err = s.once(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, sql, args...).Scan(&xmin) })
	if errors.Is(err, pgx.ErrNoRows) {
		err = nil
	}
	if err != nil || xmin == nil {
		s.recent.forget(thread)
		if again(err) || pgconn.SafeToRetry(err) {
			err = nil
		}
		return change, false, refusal(err)
	}
	var dispatches map[string]mailbox.Dispatch
	var runs map[string]mailbox.Run
	if v != nil {
		dispatches, runs = v.dispatches, v.runs
	}
	s.recent.changed(*xmin, dispatches, runs, change, true)
	return change, true, nil
}

// believed is what a need names of the thread at that version, or, of a thread that this process has never seen, what there would be
// if nobody else had either.
func (s *Store) believed(thread string, v *version, need mailbox.Need) (now seen, ok bool) {
	if v != nil {
		now, ok = v.state(need)
		now.xmin = v.xmin
		return now, ok
	}
	if !s.recent.first(thread) {
		return now, false
	}
	now = seen{dispatches: map[string]bool{}, data: map[string][]byte{}}
	now.settle(thread, need)
	return now, true
}

// simple says whether a change fits into one statement: it writes, makes nothing new but messages, or all of it, and has no two parts
// of which the tables may want one before the other.
func simple(now *seen, c mailbox.Change) bool {
	if c.Head == nil || c.Drop || c.Image != nil || len(c.Dispatches) > 1 || len(c.Runs) > 1 {
		return false
	}
	for i := range c.Dispatches {
		if now.known != now.dispatches[c.Dispatches[i].ID] {
			return false
		}
	}
	for i := range c.Runs {
		if _, known := now.data[c.Runs[i].ID]; now.known != known {
			return false
		}
	}
	return true
}

// shape is what a statement of swiftly depends on.
type shape struct{ known, dispatch, run, messages bool }

// swiftly is the statement. Its parts depend on the first one, which writes the head if that has the version, or is not there.
func (s *Store) swiftly(now *seen, c mailbox.Change) (string, []any) {
	of := shape{known: now.known, dispatch: len(c.Dispatches) > 0, run: len(c.Runs) > 0, messages: len(c.Messages) > 0}
	args := headArgs(c.Head)
	if of.known {
		args = append(args, now.xmin)
	}
	for i := range c.Dispatches {
		args = append(args, dispatchArgs(&c.Dispatches[i])...)
		if !of.known {
			args = append(args, wholeRequest(&c.Dispatches[i]))
		}
	}
	for i := range c.Runs {
		data := c.Runs[i].Data
		if of.known {
			data = changedData(now, &c.Runs[i])
		}
		args = append(args, runArgs(&c.Runs[i], data)...)
	}
	if of.messages {
		args = append(args, messageArgs(c.Head.Thread, c.Messages)...)
	}
	sql, ok := s.shapes.Load(of)
	if !ok {
		sql = s.sql(of.statement())
		s.shapes.Store(of, sql)
	}
	return sql.(string), args //nolint:errcheck,forcetypeassert // it holds nothing else
}

// statement is that of a shape.
func (of shape) statement() string {
	const there = `EXISTS (SELECT FROM head)`
	head, dispatch, run := insertHead+` ON CONFLICT (id) DO NOTHING`, putDispatchHead+` SELECT `+putDispatchRow+` WHERE `+there+putDispatchTail,
		putRunHead+` SELECT `+putRunRow+` WHERE `+there+putRunTail
	headSize, dispatchSize := headParameters, dispatchParameters+1
	if of.known {
		head, dispatch, run = fmt.Sprintf("%s AND xmin = $%d", updateHead, headParameters+1), updateDispatch+` AND `+there, updateRun+` AND `+there
		headSize, dispatchSize = headParameters+1, dispatchParameters
	}
	sql, size := `WITH head AS (`+head+` RETURNING xmin)`, headSize
	part := func(wanted bool, name, statement string, parameters int) {
		if wanted {
			sql += `, ` + name + ` AS (` + shifted(statement, size) + `)`
			size += parameters
		}
	}
	part(of.dispatch, "dispatch", dispatch, dispatchSize)
	part(of.run, "run", run, runParameters)
	part(of.messages, "message", putMessagesHead+` WHERE `+there+putMessagesTail, 0)
	return sql + ` SELECT xmin FROM head`
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
