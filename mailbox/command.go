package mailbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// command steers a run under way. It is not kept.
type command struct {
	// ID names the command, so that one that came twice is known.
	ID      string
	Payload []byte
}

// A command for a run of another process is a cell of a thread that the dispatch has for itself. The holder deletes it and puts an answer.
const (
	kindCommand = "command"
	kindAnswer  = "answer"
	// answerPoll is how often a sender polls for the answer, and notifies the holder again.
	answerPoll = 500 * time.Millisecond
	// replyTime bounds a reply.
	replyTime = 5 * time.Second
)

// sent is a command in the store.
type sent struct {
	ID      string `json:"id"`
	Payload []byte `json:"payload,omitempty"`
}

// address is the store's thread for commands to the holder of a dispatch, and the topic by which it is notified of them, and of what else
// concerns its claim. No thread of the mailbox has such a name: it is not valid UTF-8.
func address(dispatch string) string {
	sum := sha256.Sum256([]byte(dispatch))
	return "\xfflive/" + hex.EncodeToString(sum[:])
}

// sendCommand hands a command to the holder of a dispatch, in another process, and reports whether it was accepted. False, and any error, mean
// that it probably was not.
func (q *queue) sendCommand(ctx context.Context, thread, dispatch string, c command) (bool, error) {
	claimed, err := q.Thread(ctx, thread)
	if err != nil || claimed.Claim == nil || claimed.Claim.Dispatch != dispatch {
		return false, err
	}
	now, err := q.readTime(ctx)
	if err != nil {
		return false, wrap("command for thread", thread, err)
	}
	// A process that is gone answers nothing. When its lease is over, by the clock of the store, another one may have the thread.
	leased, cancel := context.WithTimeoutCause(ctx, claimed.Claim.Until.Sub(now)+answerPoll, errGone)
	defer cancel()
	ok, err := q.send(leased, address(dispatch), c)
	if errors.Is(err, errGone) {
		err = nil
	}
	return ok, wrap("command for thread", thread, err)
}

// errGone is a holder whose lease ended without an answer.
var errGone = errors.New("the lease is over")

// send puts a command, waits for the answer and deletes it.
func (q *queue) send(ctx context.Context, thread string, c command) (bool, error) {
	id := newID()
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
func (q *queue) answer(ctx context.Context, thread, id string, recall bool) (ok, answered bool, err error) {
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

// listen is for the holder of a dispatch: it calls accept for each command of another process, one at a time, and changed when something else
// may concern the claim, until stop is called. When stop returns, none of them runs any more.
func (q *queue) listen(ctx context.Context, dispatch string, accept func(context.Context, command) bool, changed func()) (stop func(), err error) {
	listening, cancel := context.WithCancel(context.WithoutCancel(ctx))
	notified, err := q.store.Watch(listening, address(dispatch))
	if err != nil {
		cancel()
		return nil, fmt.Errorf("mailbox: listen for dispatch %.80q: %w", dispatch, err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range notified {
			if !q.receive(listening, address(dispatch), accept) {
				changed()
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		<-done
	}), nil
}

// recall notifies the holder of a dispatch that something concerns its claim.
func (q *queue) recall(ctx context.Context, thread, dispatch string) {
	_, _ = q.store.Apply(ctx, store.Batch{Thread: thread, Base: store.AnyRevision, Notify: []string{address(dispatch)}})
}

// receive takes the commands that other processes sent, and answers them. It reports whether there were some.
func (q *queue) receive(ctx context.Context, thread string, accept func(context.Context, command) bool) (some bool) {
	s, err := q.store.Read(ctx, thread, store.Query{Cells: []store.Range{store.All(kindCommand)}})
	if err != nil {
		return false // the sender notifies again
	}
	for _, c := range s.Cells {
		var in sent
		ok := json.Unmarshal(c.Value, &in) == nil && accept(context.WithoutCancel(ctx), command(in))
		q.reply(ctx, thread, c.Key, ok)
	}
	return len(s.Cells) > 0
}

// reply answers a command, also when it has ended the run. A sender without an answer does not rely on the command.
func (q *queue) reply(ctx context.Context, thread, id string, ok bool) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replyTime)
	defer cancel()
	_, _ = store.ApplySurely(ctx, q.store, store.Batch{
		Thread: thread, Base: store.AnyRevision, Delete: []store.Range{store.One(kindCommand, id)}, Notify: []string{thread + id},
		Put: []store.Cell{{Kind: kindAnswer, Key: id, Value: fmt.Append(nil, ok)}},
	})
}
