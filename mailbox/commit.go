package mailbox

import "fmt"

// Commit is what an execution writes to its thread.
type Commit struct {
	// ID names the commit, which may come twice.
	ID string
	// From is the length of the log that the commit follows. Append comes after that;
	// Replace takes the place of earlier messages, by Seq, which have the same ids.
	From    int
	Append  []Message
	Replace []Message
	// Image takes the place of the thread's, if it is not nil.
	Image []byte
	// Data takes the place of the run's, if it is not nil; Result is where the run
	// stands then, if it has a Status.
	Data   []byte
	Result Result
	// Progress says that the execution has come further than those before: attempts that failed until then
	// do not count against Dispatch.MaxAttempts any more, so that work which takes long outlives any number of restarts.
	Progress bool
}

func commitNeed(h Hold) Need { return Need{Dispatches: []string{h.Dispatch}, RunsOf: true} }

// commit writes for the holder of a claim, and for nobody else. The thread may have
// been interrupted: what a run had come to is kept.
func commit(t *turn, h Hold, c Commit) (Change, error) {
	if err := t.holds(h); err != nil {
		return Change{}, err
	}
	if c.ID != "" && t.head.Commit == c.ID {
		return Change{}, nil
	}
	if c.From != t.head.Messages {
		return Change{}, fmt.Errorf("log of thread %.80q: %w", h.Thread, &ConflictError{Expected: uint64(c.From), Actual: uint64(t.head.Messages)})
	}
	if err := t.messages(h, c); err != nil {
		return Change{}, err
	}
	t.out.Image = c.Image
	d := t.s.Dispatches[h.Dispatch]
	if c.Progress && d.Attempts > 0 {
		d.Attempts = 0
		t.put(d)
	}
	if run, ok := t.s.Runs[d.RunID]; ok && (c.Data != nil || c.Result.Status != "") {
		if c.Data != nil {
			run.Data = c.Data
		}
		t.standing(run, c.Result)
	}
	t.head.Commit = c.ID
	return t.keep(), nil
}

func (t *turn) messages(h Hold, c Commit) error {
	for _, m := range c.Replace {
		if m.Seq < 1 || m.Seq > c.From {
			return fmt.Errorf("%w: message %.80q: there is no place %d in a log of %d", ErrInvalid, m.ID, m.Seq, c.From)
		}
		t.out.Messages = append(t.out.Messages, m)
	}
	for _, m := range c.Append {
		t.head.Messages++
		m.Seq, m.At = t.head.Messages, t.now
		if err := checkID("message id", m.ID); err != nil {
			return fmt.Errorf("message %d of thread %.80q: %w", m.Seq, h.Thread, err)
		}
		if m.ID == "" {
			return fmt.Errorf("%w: message %d of thread %.80q has no id", ErrInvalid, m.Seq, h.Thread)
		}
		t.out.Messages = append(t.out.Messages, m)
	}
	return nil
}

// standing writes a run with where it stands.
func (t *turn) standing(run Run, r Result) {
	if r.Status != "" {
		run.Status, run.Termination, run.Output, run.Error = r.Status, r.Termination, r.Response, r.Error
		run.Wait, run.WaitUntil = r.Wait, r.WaitUntil
		if r.Status == RunDone {
			run.FinishedAt = t.now
		}
	}
	t.putRun(run)
}
