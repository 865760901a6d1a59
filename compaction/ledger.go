package compaction

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
)

// StoredLedger is the ledger of the beginning of a thread's log.
type StoredLedger struct {
	// Messages is how many messages were read, Sum a checksum of them.
	Messages int        `json:"messages"`
	Sum      uint64     `json:"sum"`
	State    abi.Ledger `json:"state"`
}

// LedgerStore is a [Store] that keeps the ledgers of threads too. With another store each compaction reads
// the log from its beginning. Both methods are called in the background. A ledger depends on the log alone,
// so the last write may win.
type LedgerStore interface {
	// LoadLedger returns the ledger of a thread, the zero value for none.
	LoadLedger(thread string) (StoredLedger, error)
	// SaveLedger replaces the ledger of a thread. Its argument must not be changed.
	SaveLedger(thread string, l StoredLedger) error
}

// ledgerOf returns the ledger of a log up to the end of a range. It continues the stored one if that is of
// the same log and version, reads the log from its beginning otherwise, and stores the result.
func (c *Compactor) ledgerOf(thread string, log []abi.Message) abi.Ledger {
	store, ok := c.conf().Store.(LedgerStore)
	if !ok {
		return readLedger(StoredLedger{}, log).State
	}
	old, err := store.LoadLedger(thread)
	if err != nil {
		c.conf().Logger.Warn("the ledger of a thread could not be read", "thread_id", thread, "error", err)
	}
	if old.of(log) && old.Messages == len(log) {
		return old.State
	}
	next := readLedger(old, log)
	if err := store.SaveLedger(thread, next); err != nil {
		c.conf().Logger.Warn("the ledger of a thread could not be stored", "thread_id", thread, "error", err)
	}
	return next.State
}

// readLedger reads what a log has behind a stored ledger.
func readLedger(old StoredLedger, log []abi.Message) StoredLedger {
	l, from := ledger.New(), 0
	if old.of(log) {
		l, from = ledger.From(old.State), old.Messages
	}
	l.Add(log[from:]...)
	return StoredLedger{Messages: len(log), Sum: sumOf(log), State: l.State()}
}

// of reports whether a ledger is of the beginning of a log.
func (s *StoredLedger) of(log []abi.Message) bool {
	return s.State.Version == abi.LedgerVersion && s.Messages > 0 && s.Messages <= len(log) && s.Sum == sumOf(log[:s.Messages])
}

// Follow makes a ledger of the beginning of a log that of another one, in which retention has dropped content that the ledger has read. It
// reports false, and changes nothing, if the ledger is not of that log.
func (s *StoredLedger) Follow(log, rest []abi.Message) bool {
	if len(log) != len(rest) || !s.of(log) {
		return false
	}
	s.Sum = sumOf(rest[:s.Messages])
	return true
}

// sumOf is a checksum of the ids, texts and calls of messages.
func sumOf(log []abi.Message) uint64 {
	h, size := fnv.New64a(), make([]byte, 0, binary.MaxVarintLen64)
	add := func(s string) {
		_, _ = h.Write(binary.AppendUvarint(size, uint64(len(s))))
		_, _ = h.Write([]byte(s))
	}
	for i := range log {
		add(log[i].ID)
		add(log[i].Text())
		for _, call := range log[i].ToolCalls {
			add(call.ID)
			add(argumentText(call.Arguments))
		}
	}
	return h.Sum64()
}

// Bytes of a rendering per token: what is written by default, and the most that a policy may count.
const (
	bytesPerToken     = 3.6
	mostBytesPerToken = 8
)

// trimmed leaves in a ledger what a summary of so many tokens can show.
func trimmed(s abi.Ledger, tokens int64) *abi.Ledger {
	const most = 1 << 20
	out := ledger.Trim(s, int(min(tokens*mostBytesPerToken, most)))
	return &out
}

// Ledger is a [Summarizer] that needs no model and no module: it renders the ledger of a request, or one of its
// messages, as the bundled policy "ledger" does.
type Ledger struct{}

// Name is "ledger".
func (Ledger) Name() string { return "ledger" }

// Summarize implements [Summarizer]. The text keeps within the budget, as this package estimates tokens.
func (Ledger) Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	s := stateOf(r)
	s.Names, s.Talk.Tasks = slices.Clone(s.Names), slices.Clone(s.Talk.Tasks)
	for _, t := range r.LiveTasks {
		s.Talk.Tasks = append(s.Talk.Tasks, abi.LedgerTask{Text: "background task " + t, Status: abi.TaskDoing})
	}
	ledger.Focus(&s, r.Focus)
	for limit := float64(r.BudgetTokens) * bytesPerToken; limit >= ledger.MinBudget; {
		text := ledger.Render(&s, int(min(limit, maxSummary)))
		tokens := textTokens(text)
		if tokens <= r.BudgetTokens {
			return &abi.Summary{Text: text, Policy: "ledger"}, nil
		}
		limit = min(limit, float64(len(text))) * min(.97, float64(r.BudgetTokens)/float64(tokens))
	}
	return nil, fmt.Errorf("compaction: a budget of %d tokens is too small for a summary", r.BudgetTokens)
}

// stateOf is the ledger of a request. Without one it is read from the messages, behind what the previous
// summary tells.
func stateOf(r *abi.SummarizeRequest) abi.Ledger {
	if r.Ledger != nil {
		return *r.Ledger
	}
	l := ledger.New()
	if r.PreviousSummary != nil {
		if old, ok := ledger.ReadBack(*r.PreviousSummary); ok {
			l = ledger.From(old)
		} else {
			l.Before(*r.PreviousSummary)
		}
	}
	l.Add(r.Messages...)
	return l.State()
}
