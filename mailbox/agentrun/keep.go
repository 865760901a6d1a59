package agentrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
	threads "github.com/mortise-dev/mortise/thread"
)

// page is how many messages of a log are read at a time.
const page = 500

// keeper keeps the checkpoints of one execution. It is an agent.Checkpointer.
type keeper struct {
	job *mailbox.Job
	// cause is why the execution ends, once it does.
	cause func() error
	// patience is Config.Patience.
	patience func(agent.Record, agent.Waiting) time.Duration

	mu sync.Mutex
	// thread is the latest checkpoint, without messages; found reports whether there is one.
	thread agent.Checkpoint
	found  bool
	log    []abi.Message
	// seqs are the places of the messages in the log.
	seqs map[string]int
	underWay
	compaction unwritten
	commits    int
	// failed is set when the last commit of the run may not have landed.
	failed bool
}

// underWay is what came for a run that is under way.
type underWay struct {
	// accepted are messages that were sent to it and are not in the log.
	accepted []abi.Message
	// taken are decisions that it has and that no checkpoint has yet. mode is that of the agent.
	taken []agent.Decision
	mode  agent.ToolMode
	// closed is set when nothing more is accepted for it.
	closed bool
}

// open reads the thread.
func open(ctx context.Context, j *mailbox.Job, cause func() error) (*keeper, error) {
	k := &keeper{job: j, cause: cause, seqs: map[string]int{}}
	t, image, err := j.Load(ctx)
	if err != nil {
		return nil, err
	}
	for len(k.log) < t.Messages {
		list, err := j.Log(ctx, len(k.log)+1, page)
		if err != nil {
			return nil, err
		}
		if len(list) == 0 {
			return nil, fmt.Errorf("agentrun: thread %.80q: its log has %d messages, and ends after %d", j.Dispatch.Thread, t.Messages, len(k.log))
		}
		for _, m := range list {
			v, err := DecodeMessage(m)
			if err != nil {
				return nil, err
			}
			k.log = append(k.log, v)
			k.seqs[m.ID] = m.Seq
		}
	}
	k.found = len(image) > 0 || len(k.log) > 0
	k.thread, k.accepted, err = getImage(image)
	k.thread.Run.ThreadID = j.Dispatch.Thread
	k.dropKnown()
	return k, err
}

// LoadThread implements agent.Checkpointer. Messages that were accepted under way and are not in the log wait for
// the run, as a notification.
func (k *keeper) LoadThread(context.Context, string) (agent.Checkpoint, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := k.thread
	out.From, out.Messages = 0, slices.Clone(k.log)
	out.Held = slices.Clone(out.Held)
	if len(k.accepted) > 0 {
		out.Held = append(out.Held, abi.Notice{Kind: abi.NoticeMessages, Messages: slices.Clone(k.accepted)})
	}
	return out, k.found, nil
}

// FindRun implements agent.Checkpointer. The run that is executed is not found if other runs of the thread came since it began: it begins
// anew then.
func (k *keeper) FindRun(ctx context.Context, id string) (agent.Record, bool, error) {
	if id == k.job.Run.ID && id != k.thread.Run.RunID {
		return agent.Record{}, false, nil
	}
	run, found, err := k.job.LoadRun(ctx, id)
	if err != nil || !found || len(run.Data) == 0 {
		return agent.Record{}, false, err // it has no checkpoint yet
	}
	var r agent.Record
	if err := json.Unmarshal(run.Data, &r); err != nil {
		return r, false, fmt.Errorf("agentrun: record of run %.80q: %w", id, err)
	}
	return r, true, nil
}

// SaveCheckpoint implements agent.Checkpointer: it is a commit of the claim, together with the marker that was swapped in since the one
// before and with the notifications that the checkpoint acknowledges.
func (k *keeper) SaveCheckpoint(ctx context.Context, c agent.Checkpoint) error {
	var here delivery // whose notifications are in the thread
	if d, ok := c.Delivery.(delivery); ok && k.job.Keeps(d.Store()) {
		here = d
	}
	if err := k.save(ctx, c, here); err != nil {
		return err
	}
	if here != nil {
		here.Deleted(ctx, c.Done...)
	}
	return nil
}

func (k *keeper) save(ctx context.Context, c agent.Checkpoint, here delivery) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	step := c.Run.Status == agent.StatusRunning && slices.ContainsFunc(c.Messages, func(m abi.Message) bool { return m.Role == abi.RoleTool })
	c.Run = k.standing(c)
	if c.From != len(k.log) {
		return fmt.Errorf("agentrun: thread %.80q: %w: its log has %d messages, the checkpoint follows %d", k.job.Dispatch.Thread, agent.ErrStale, len(k.log), c.From)
	}
	commit, err := k.commit(c)
	if err != nil {
		return err
	}
	commit.Progress = step
	if here != nil {
		commit.More.Delete = here.Cells(c.Done...)
	}
	if err := k.write(ctx, commit); err != nil {
		if errors.Is(err, mailbox.ErrConflict) {
			return fmt.Errorf("%w: %w", agent.ErrStale, err)
		}
		return err
	}
	k.kept(c)
	return nil
}

// standing returns the record to write of a run: one that may continue elsewhere is not done yet, nor is one that has not read all
// messages that it accepted, before those are queued; and one that waits for a decision that has come does not wait.
func (k *keeper) standing(c agent.Checkpoint) agent.Record {
	r := c.Run
	if r.Status == agent.StatusWaiting && agent.Due(resolved(c.Tickets, k.taken), k.mode) {
		r.Status, r.Reason = agent.StatusRunning, ""
	}
	if r.Status != agent.StatusDone {
		return r
	}
	cancelled := r.Termination.Type == agent.Cancelled && !errors.Is(k.cause(), mailbox.ErrStopped)
	if r.Termination.Type == agent.Failed || cancelled || len(k.unread(c)) > 0 {
		r.Status, r.Reason = agent.StatusRunning, ""
	}
	return r
}

// commit returns what a checkpoint writes. The caller holds the lock.
func (k *keeper) commit(c agent.Checkpoint) (mailbox.Commit, error) {
	record, err := encodeRecord(c.Run)
	if err != nil {
		return mailbox.Commit{}, err
	}
	out := mailbox.Commit{ID: k.nextID(), From: c.From, Data: record, Result: k.result(c.Run)}
	for _, m := range c.Messages {
		v, err := k.message(m)
		if err != nil {
			return out, err
		}
		out.Append = append(out.Append, v)
	}
	for _, m := range c.Edited {
		v, err := k.message(m)
		if err != nil {
			return out, err
		}
		if v.Seq = k.seqs[m.ID]; v.Seq == 0 {
			continue // it is among those that are appended
		}
		out.Replace = append(out.Replace, v)
	}
	out.Image, err = putImage(c, missing(k.accepted, k.seqs, c), pending(k.taken, c.Tickets))
	return out, err
}

func (k *keeper) nextID() string {
	k.commits++
	return fmt.Sprintf("%s/%d", k.job.Dispatch.Instance, k.commits)
}

func (k *keeper) message(m abi.Message) (mailbox.Message, error) {
	data, err := threads.Encode(&m)
	return mailbox.Message{ID: m.ID, Run: k.job.Run.ID, Data: data}, err
}

// kept makes a checkpoint that was written the latest one. The caller holds the lock.
func (k *keeper) kept(c agent.Checkpoint) {
	for _, m := range c.Messages {
		k.log = append(k.log, m)
		k.seqs[m.ID] = len(k.log)
	}
	for _, m := range c.Edited {
		if seq := k.seqs[m.ID]; seq > 0 {
			k.log[seq-1] = m
		}
	}
	c.Messages, c.Edited, c.Delivery, c.Done = nil, nil, nil, nil
	k.thread, k.found = c, true
	k.taken = pending(k.taken, c.Tickets)
	k.dropKnown()
}

// dropKnown forgets the accepted messages that are in the log, or are held.
func (k *keeper) dropKnown() {
	k.accepted = missing(k.accepted, k.seqs, k.thread)
}

// missing are the messages that are neither in the log nor in a checkpoint.
func missing(list []abi.Message, seqs map[string]int, c agent.Checkpoint) []abi.Message {
	return slices.DeleteFunc(slices.Clone(list), func(m abi.Message) bool {
		same := func(o abi.Message) bool { return o.ID == m.ID }
		return seqs[m.ID] > 0 || slices.ContainsFunc(c.Messages, same) || slices.ContainsFunc(c.Held, func(n abi.Notice) bool {
			return slices.ContainsFunc(n.Messages, same)
		})
	})
}

// accept makes messages durable that were sent to the run under way. It reports whether it did, and which of them
// are new.
func (k *keeper) accept(ctx context.Context, list []abi.Message) (added []abi.Message, ok bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return nil, false
	}
	for _, m := range list {
		if !k.knows(m.ID) {
			added = append(added, m)
		}
	}
	if len(added) == 0 {
		return nil, true
	}
	if err := k.extra(ctx, append(slices.Clone(k.accepted), added...), k.taken); err != nil {
		return nil, false
	}
	k.accepted = append(k.accepted, added...)
	return added, true
}

// extra makes durable what came under way, together with the latest checkpoint. The caller holds the lock.
func (k *keeper) extra(ctx context.Context, accepted []abi.Message, taken []agent.Decision) error {
	data, err := putImage(k.thread, accepted, taken)
	if err != nil {
		return err
	}
	return k.write(ctx, mailbox.Commit{ID: k.nextID(), From: len(k.log), Image: data})
}

// knows reports whether a message is in the log, or waits for the run. The caller holds the lock.
func (k *keeper) knows(id string) bool {
	one := []abi.Message{{ID: id}}
	return len(missing(one, k.seqs, k.thread)) == 0 || slices.ContainsFunc(k.accepted, func(m abi.Message) bool { return m.ID == id })
}

// left accepts nothing more for the run, and returns what it did not read.
func (k *keeper) left(ctx context.Context) []abi.Message {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.closed = true
	k.rest(ctx)
	return k.unread(k.thread)
}

// unread returns the accepted messages that are not in the log after a checkpoint. The caller holds the lock.
func (k *keeper) unread(c agent.Checkpoint) []abi.Message {
	out := missing(k.accepted, k.seqs, c)
	for _, n := range c.Held {
		out = append(out, n.Messages...)
	}
	return out
}

// until is when a run has waited long enough, zero if never.
func (k *keeper) until(r agent.Record) time.Time {
	if k.patience == nil || r.Status != agent.StatusWaiting || r.Waiting == nil {
		return time.Time{}
	}
	d := k.patience(r, *r.Waiting)
	if d <= 0 {
		return time.Time{}
	}
	return r.Waiting.Since.Add(d).UTC().Truncate(time.Millisecond) // as stores keep times
}

// result returns the state of a run after a checkpoint.
func (k *keeper) result(r agent.Record) mailbox.Result {
	out := mailbox.Result{Response: r.Final, Error: r.Error, Totals: totals(&r)}
	switch r.Status {
	case agent.StatusWaiting:
		out.Status = mailbox.RunWaiting
		if r.Waiting != nil {
			out.Wait, out.WaitUntil, out.Tickets = string(r.Waiting.Reason), k.until(r), tickets(r.Waiting.Tickets)
		}
	case agent.StatusDone:
		out.Status, out.Termination = mailbox.RunDone, r.Reason
	default:
		return mailbox.Result{Totals: out.Totals}
	}
	return out
}

// totals returns what a run has used, as lists have it.
func totals(r *agent.Record) mailbox.Totals {
	return mailbox.Totals{
		Steps: r.Steps, Prompt: r.Usage.PromptTokens, CacheRead: r.Usage.CacheReadTokens, CacheWrite: r.Usage.CacheCreationTokens,
		Completion: r.Usage.CompletionTokens, Cost: r.Cost,
	}
}

// tickets returns those that wait for a decision, as lists have them.
func tickets(list []agent.Ticket) (out []mailbox.Ticket) {
	for i := range list {
		t := &list[i]
		out = append(out, mailbox.Ticket{ID: t.ID, Call: t.Call.ID, Tool: t.Call.Name, Action: t.Action, Message: t.Message, By: t.By})
	}
	return out
}
