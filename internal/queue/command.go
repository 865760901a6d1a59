package queue

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/mortise-dev/mortise/store"
)

// Target is a run under way.
type Target struct{ Thread, Run, Dispatch string }

// CommandKind is what a command asks.
type CommandKind string

// Kinds of commands. Others are refused.
const (
	CommandMessages CommandKind = "messages"
	CommandCancel   CommandKind = "cancel"
	CommandDecision CommandKind = "decision"
	CommandPause    CommandKind = "pause"
)

// Command steers a run under way. It is not kept.
type Command struct {
	Kind CommandKind
	// ID names the command, so that one that came twice is known.
	ID      string
	Payload []byte
}

// A command for a run of another process is a cell of a thread that its target has for itself. The listener deletes it and puts an answer.
const (
	kindCommand = "command"
	kindAnswer  = "answer"
	// answerPoll is how often a sender polls for the answer, and notifies the listener again.
	answerPoll = 500 * time.Millisecond
	// replyTime bounds a reply.
	replyTime = 5 * time.Second
)

// sent is a command in the store.
type sent struct {
	Kind    CommandKind `json:"kind"`
	ID      string      `json:"id"`
	Payload []byte      `json:"payload,omitempty"`
}

// address is the store's thread for commands to a target, and the topic of the listener. No thread of the mailbox has such a name: it is not
// valid UTF-8.
func address(t Target) string {
	sum := sha256.Sum256(encode([]string{t.Thread, t.Run, t.Dispatch}))
	return "\xfflive/" + hex.EncodeToString(sum[:])
}

// Deliver hands a command to the listener of a target: in this process, or else in the one that holds the thread for the dispatch. It
// reports whether the listener accepted it. False, and any error, mean that it probably did not.
func (q *Queue) Deliver(ctx context.Context, t Target, c Command) (bool, error) {
	q.lines.mu.Lock()
	l := q.lines.open[t]
	q.lines.mu.Unlock()
	if l != nil {
		return l.hand(ctx, c)
	}
	claimed, err := q.Thread(ctx, t.Thread)
	if err != nil || claimed.Claim == nil || claimed.Claim.Dispatch != t.Dispatch {
		return false, err
	}
	now, err := q.Time(ctx)
	if err != nil {
		return false, wrap("command for thread", t.Thread, err)
	}
	// A process that is gone answers nothing. When its lease is over, by the clock of the store, another one may have the thread.
	leased, cancel := context.WithTimeoutCause(ctx, claimed.Claim.Until.Sub(now)+answerPoll, errGone)
	defer cancel()
	ok, err := q.send(leased, address(t), c)
	if errors.Is(err, errGone) {
		err = nil
	}
	return ok, wrap("command for thread", t.Thread, err)
}

// errGone is a holder whose lease ended without an answer.
var errGone = errors.New("the lease is over")

// hand gives a command to a listener of this process.
func (l *line) hand(ctx context.Context, c Command) (bool, error) {
	select {
	case <-l.gone:
		return false, nil
	case <-l.turn:
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
	accepted := make(chan bool, 1)
	go func() {
		defer func() { l.turn <- struct{}{} }()
		accepted <- l.accept(context.WithoutCancel(ctx), c)
	}()
	select {
	case ok := <-accepted:
		return ok, nil
	case <-ctx.Done():
		return false, context.Cause(ctx)
	}
}

// send puts a command, waits for the answer and deletes it.
func (q *Queue) send(ctx context.Context, thread string, c Command) (bool, error) {
	id := uuid.Must(uuid.NewV7()).String()
	watching, cancel := context.WithCancel(ctx)
	defer cancel()
	answers, err := q.store.Watch(watching, thread+id)
	if err != nil {
		return false, err
	}
	b := store.Batch{
		Thread: thread, ID: id, Base: store.AnyRevision, Notify: []string{thread},
		Put: []store.Cell{{Kind: kindCommand, Key: id, Value: encode(sent(c))}},
	}
	if _, err := store.ApplySurely(ctx, q.store, b); err != nil {
		return false, err
	}
	for {
		timer := time.NewTimer(answerPoll)
		select {
		case <-answers:
		case <-timer.C:
		case <-ctx.Done():
		}
		timer.Stop()
		ok, answered, err := q.answer(context.WithoutCancel(ctx), thread, id, ctx.Err() != nil)
		switch {
		case answered || err != nil:
			return ok, err
		case ctx.Err() != nil:
			return false, context.Cause(ctx)
		}
		b = store.Batch{Thread: thread, Base: store.AnyRevision, Notify: []string{thread}}
		if _, err := q.store.Apply(ctx, b); err != nil && ctx.Err() == nil {
			return false, err
		}
	}
}

// answer takes the answer to a command, if it is there; with recall it takes the command back if it is not.
func (q *Queue) answer(ctx context.Context, thread, id string, recall bool) (ok, answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerPoll)
	defer cancel()
	query := store.Query{Cells: []store.Range{store.All(kindAnswer), store.All(kindCommand)}}
	_, err = store.Update(ctx, q.store, thread, query, func(s store.Snapshot) (*store.Batch, error) {
		var value []byte
		if value, answered = s.Cell(kindAnswer, id); !answered && !recall {
			return nil, nil
		}
		ok = string(value) == "true"
		others := slices.ContainsFunc(s.Cells, func(c store.Cell) bool { return c.Key != id })
		return &store.Batch{Drop: !others, Delete: []store.Range{store.One(kindAnswer, id), store.One(kindCommand, id)}}, nil
	})
	return ok, answered, err
}

// receive takes the commands that other processes sent, and answers them.
func (q *Queue) receive(ctx context.Context, t Target, l *line) {
	thread := address(t)
	s, err := q.store.Read(ctx, thread, store.Query{Cells: []store.Range{store.All(kindCommand)}})
	if err != nil {
		return // the sender notifies again
	}
	for _, c := range s.Cells {
		var in sent
		ok := json.Unmarshal(c.Value, &in) == nil
		if ok {
			ok, err = l.hand(ctx, Command(in))
			if err != nil {
				return
			}
		}
		q.reply(ctx, thread, c.Key, ok)
	}
}

// reply answers a command, also when it has ended the listener. A sender without an answer does not rely on the command.
func (q *Queue) reply(ctx context.Context, thread, id string, ok bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer cancel()
	_, _ = store.ApplySurely(ctx, q.store, store.Batch{
		Thread: thread, Base: store.AnyRevision, Delete: []store.Range{store.One(kindCommand, id)}, Notify: []string{thread + id},
		Put: []store.Cell{{Kind: kindAnswer, Key: id, Value: fmt.Append(nil, ok)}},
	})
}
