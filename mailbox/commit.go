package mailbox

import (
	"cmp"
	"context"
	"fmt"

	threads "github.com/mortise-dev/mortise/thread"
)

// Commit is what an execution writes to its thread.
type Commit struct {
	// ID names the commit, which may come twice.
	ID string
	// From is the length of the log that the commit follows. Append comes after that;
	// Replace replaces earlier messages, by Seq, which have the same ids.
	From    int
	Append  []Message
	Replace []Message
	// Image replaces the thread's, if it is not nil.
	Image []byte
	// Data replaces the run's, if it is not nil; Result is where the run stands then, if it has a Status.
	Data   []byte
	Result Result
	// Progress is set when the execution has come further than those before: attempts that failed until then
	// do not count against Dispatch.MaxAttempts any more, so that work which takes long outlives any number of restarts.
	Progress bool
	// More is what else changes in the thread by the same transition, as the state of its compactions. Its Append and Replace are not used.
	More threads.Commit
}

// commit writes for the holder of a claim, and for no other. The thread may have been interrupted: what a run had come to is kept.
func (q *queue) commit(ctx context.Context, h hold, c Commit) (err error) {
	c.Result = c.Result.storable()
	replaced := map[int]Message{} // a place of a log has the same id for ever
	for _, m := range c.Replace {
		old, err := q.Messages(ctx, h.Thread, m.Seq, 1)
		if err != nil {
			return err
		}
		if len(old) > 0 {
			replaced[m.Seq] = old[0]
		}
	}
	_, err = q.change(ctx, Operation{Name: "commit", Thread: h.Thread, Dispatch: h.Dispatch}, need{more: c.More.Query()}, func(t *turn) (bool, error) {
		return true, commit(t, h, &c, replaced)
	})
	return err
}

func commit(t *turn, h hold, c *Commit, replaced map[int]Message) error {
	if err := cmp.Or(t.fitsCommit(c.bytes()), t.held(h)); err != nil {
		return err
	}
	if c.ID != "" && t.thread.Commit == c.ID {
		return nil
	}
	if c.From != t.length {
		return fmt.Errorf("its log: %w", &conflictError{expected: uint64(c.From), actual: uint64(t.length)}) //nolint:gosec // counts
	}
	if err := t.replace(c.Replace, replaced); err != nil {
		return err
	}
	if err := t.append(c.Append); err != nil {
		return err
	}
	t.image = c.Image
	d := t.dispatches[h.Dispatch]
	if c.Progress && d.Attempts+d.Postponed > 0 {
		d.Attempts, d.Postponed = 0, 0
		t.put(d)
	}
	if run, ok := t.runs[d.RunID]; ok && (c.Data != nil || c.Result.Status != "" || c.Result.Totals != (Totals{})) {
		run.Data = c.Data
		t.standing(run, c.Result)
	}
	if err := c.More.AddTo(&t.more, t.seen); err != nil {
		return err
	}
	t.thread.Commit = c.ID
	t.save()
	return nil
}

// replace puts messages in place of others, which have the same ids.
func (t *turn) replace(list []Message, replaced map[int]Message) error {
	for _, m := range list {
		if m.Seq < 1 || m.Seq > t.length {
			return fmt.Errorf("%w: message %.80q: there is no place %d in a log of %d", ErrInvalid, m.ID, m.Seq, t.length)
		}
		old := replaced[m.Seq]
		if old.ID != m.ID {
			return fmt.Errorf("%w: message %.80q: place %d has %.80q", ErrConflict, m.ID, m.Seq, old.ID)
		}
		old.Data = m.Data
		t.messages = append(t.messages, old)
	}
	return nil
}

// append puts messages at the end of the log.
func (t *turn) append(list []Message) error {
	fresh := map[string]bool{}
	for _, m := range list {
		t.thread.Messages++
		m.Seq, m.At = t.thread.Messages, t.now
		if err := checkID("message id", m.ID); err != nil {
			return fmt.Errorf("message %d: %w", m.Seq, err)
		}
		if m.ID == "" {
			return fmt.Errorf("%w: message %d has no id", ErrInvalid, m.Seq)
		}
		if fresh[m.ID] {
			return fmt.Errorf("%w: message %.80q comes twice", ErrConflict, m.ID)
		}
		fresh[m.ID] = true
		t.messages = append(t.messages, m)
	}
	return nil
}

// standing writes a run with where it stands.
func (t *turn) standing(run Run, r Result) {
	run.Totals = cmp.Or(r.Totals, run.Totals)
	if r.Status != "" {
		r.Totals = run.Totals
		run.Result = r
		if r.Status == RunDone {
			run.FinishedAt = t.now
		}
	}
	t.putRun(run)
}
