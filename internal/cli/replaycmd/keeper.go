package replaycmd

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/thread"
)

// keeper writes a conversation into its thread as it grows. It is the compactor's store: a compaction state is written together with the
// messages and the events that are not written yet, in one commit. A nil keeper writes nothing. It is safe for concurrent use.
type keeper struct {
	threads *thread.Threads
	thread  string
	// log returns the agent's log.
	log func() []abi.Message

	mu sync.Mutex
	// kept is what the thread has, at first what it had before.
	kept   []abi.Message
	events []compaction.Event
	err    error
}

var _ compaction.LedgerStore = (*keeper)(nil)

// newKeeper reads what the thread has: a replay continues it.
func newKeeper(ctx context.Context, threads *thread.Threads, id string) (*keeper, error) {
	if threads == nil {
		return nil, nil //nolint:nilnil // nothing is to be kept
	}
	log, err := threads.Messages(ctx, id)
	if err != nil && !errors.Is(err, thread.ErrUnknown) {
		return nil, err
	}
	return &keeper{threads: threads, thread: id, kept: log}, nil
}

// follow sets where the log comes from. Without it there is none.
func (k *keeper) follow(log func() []abi.Message) {
	if k != nil {
		k.log = log
	}
}

// settled cuts a log before the message whose tool calls have no results yet: another process continues it behind whole steps.
func settled(log []abi.Message) []abi.Message {
	open := map[string]bool{}
	for i := len(log) - 1; i >= 0; i-- {
		switch m := &log[i]; {
		case m.Role == abi.RoleTool:
			open[m.ToolCallID] = true
		case len(m.ToolCalls) == 0:
		case slices.ContainsFunc(m.ToolCalls, func(c abi.ToolCall) bool { return !open[c.ID] }):
			return log[:i]
		default:
			return log
		}
	}
	return log
}

// commit writes what is new, with more. The caller does not hold the lock. After a failure it writes only that.
func (k *keeper) commit(ctx context.Context, all bool, more func(*thread.Commit, []abi.Message)) (uint64, error) {
	var log []abi.Message
	if k.log != nil {
		log = k.log()
	}
	if !all {
		log = settled(log)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	c := thread.Commit{Events: k.events}
	if k.err == nil && len(log) > len(k.kept) {
		c.Append = log[len(k.kept):]
	}
	more(&c, log)
	revision, err := k.threads.Commit(ctx, k.thread, c)
	if err == nil {
		k.kept, k.events = append(k.kept, c.Append...), nil
	}
	return revision, err
}

// keep writes what is new. After a failure it writes nothing more.
func (k *keeper) keep(ctx context.Context) {
	if k == nil || k.failed() != nil {
		return
	}
	if _, err := k.commit(ctx, false, func(*thread.Commit, []abi.Message) {}); err != nil {
		k.mu.Lock()
		k.err = err
		k.mu.Unlock()
	}
}

func (k *keeper) failed() error {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.err
}

// finish writes what is new, and messages that plugins have changed since they were written.
func (k *keeper) finish(ctx context.Context) error {
	if k == nil || k.log == nil {
		return nil
	}
	if err := k.failed(); err != nil {
		return err
	}
	_, err := k.commit(ctx, true, func(c *thread.Commit, log []abi.Message) {
		for i := range min(len(k.kept), len(log)) {
			if !reflect.DeepEqual(k.kept[i], log[i]) {
				c.Replace = append(c.Replace, log[i])
			}
		}
	})
	return err
}

// Load implements compaction.Store.
func (k *keeper) Load(id string) (compaction.State, uint64, error) { return k.threads.Load(id) }

// Swap implements compaction.Store.
func (k *keeper) Swap(id string, rev uint64, s compaction.State) (uint64, error) {
	if id != k.thread {
		return k.threads.Swap(id, rev, s)
	}
	return k.commit(context.Background(), false, func(c *thread.Commit, _ []abi.Message) { //nolint:forbidigo // the interface has no contexts
		c.State, c.Base = &s, rev
	})
}

// LoadLedger implements compaction.LedgerStore.
func (k *keeper) LoadLedger(id string) (compaction.StoredLedger, error) {
	return k.threads.LoadLedger(id)
}

// SaveLedger implements compaction.LedgerStore.
func (k *keeper) SaveLedger(id string, l compaction.StoredLedger) error {
	return k.threads.SaveLedger(id, l)
}

// Record implements compaction.Store. The event is written with the next state, or at the end of the step.
func (k *keeper) Record(e compaction.Event) error {
	if e.Thread != k.thread {
		return k.threads.Record(e)
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.events = append(k.events, e)
	return nil
}
