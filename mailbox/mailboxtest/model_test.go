package mailboxtest_test

import (
	"context"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store/memstore"
)

type decider = func(mailbox.State) (mailbox.Change, error)

// broken is a store with one fault in many of its answers.
type broken struct {
	mailbox.Store

	count   atomic.Int64
	change  func(*mailbox.Change)
	state   func(*mailbox.State)
	threads func([]mailbox.Head) []mailbox.Head
	due     func([]mailbox.Head, time.Time) ([]mailbox.Head, time.Time)
	counts  func(mailbox.Counts)
	claims  func(map[string]int)
	purged  func(mailbox.PurgeQuery) mailbox.PurgeQuery
	listed  func(mailbox.Dispatch) bool
}

func (b *broken) often() bool { return b.count.Add(1)%10 == 0 }

func (b *broken) Update(ctx context.Context, thread string, need mailbox.Need, decide decider) error {
	return b.Store.Update(ctx, thread, need, func(s mailbox.State) (mailbox.Change, error) {
		c, err := decide(s)
		if b.change != nil && c.Head != nil && b.often() {
			b.change(&c)
		}
		return c, err
	})
}

func (b *broken) Load(ctx context.Context, thread string, need mailbox.Need) (mailbox.State, error) {
	s, err := b.Store.Load(ctx, thread, need)
	if b.state != nil && b.often() {
		b.state(&s)
	}
	return s, err
}

func (b *broken) Threads(ctx context.Context, q mailbox.ThreadQuery) ([]mailbox.Head, error) {
	heads, err := b.Store.Threads(ctx, q)
	if b.threads != nil {
		heads = b.threads(heads)
	}
	return heads, err
}

func (b *broken) Due(ctx context.Context, q mailbox.DueQuery) ([]mailbox.Head, time.Time, error) {
	heads, next, err := b.Store.Due(ctx, q)
	if b.due != nil {
		heads, next = b.due(heads, next)
	}
	return heads, next, err
}

func (b *broken) Claims(ctx context.Context) (map[string]int, error) {
	claims, err := b.Store.Claims(ctx)
	if b.claims != nil {
		b.claims(claims)
	}
	return claims, err
}

func (b *broken) Count(ctx context.Context) (mailbox.Counts, error) {
	c, err := b.Store.Count(ctx)
	if b.counts != nil {
		b.counts(c)
	}
	return c, err
}

func (b *broken) Purge(ctx context.Context, q mailbox.PurgeQuery) (int, error) {
	if b.purged != nil {
		q = b.purged(q)
	}
	return b.Store.Purge(ctx, q)
}

func (b *broken) Dispatches(ctx context.Context, q mailbox.DispatchQuery) ([]mailbox.Dispatch, error) {
	list, err := b.Store.Dispatches(ctx, q)
	if b.listed != nil {
		list = slices.DeleteFunc(list, func(d mailbox.Dispatch) bool { return !b.listed(d) })
	}
	return list, err
}

// TestModel_notices holds that the model finds faults of a store, and none where there is none.
func TestModel_notices(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		broken *broken
		want   string
	}{
		"nothing":             {&broken{}, ""},
		"a lost write":        {&broken{change: func(c *mailbox.Change) { c.Head = nil }}, "step"},
		"a lost dispatch":     {&broken{change: func(c *mailbox.Change) { c.Dispatches = nil }}, "step"},
		"a lost run":          {&broken{change: func(c *mailbox.Change) { c.Runs = nil }}, "step"},
		"a lost wake-up":      {&broken{change: func(c *mailbox.Change) { c.Head.DueAt = time.Time{} }}, "something can be done"},
		"a longer lease":      {&broken{change: longer}, "the state is"},
		"another message":     {&broken{change: renamed}, "the log is"},
		"a fence that stands": {&broken{change: func(c *mailbox.Change) { c.Head.Fence-- }}, "the state is"},
		"a queue in disorder": {&broken{state: func(s *mailbox.State) { slices.Reverse(s.Queued) }}, "the state is"},
		"a request of another": {&broken{state: func(s *mailbox.State) {
			for id, d := range s.Dispatches {
				d.Request = append(slices.Clip(d.Request), 'x')
				s.Dispatches[id] = d
			}
		}}, "the request of"},
		"a thread that is not listed": {&broken{threads: func(h []mailbox.Head) []mailbox.Head { return h[min(1, len(h)):] }}, "threads: "},
		"an order of its own": {&broken{due: func(h []mailbox.Head, next time.Time) ([]mailbox.Head, time.Time) {
			slices.Reverse(h)
			return h, next
		}}, "due: "},
		"a look too late":               {&broken{due: func(h []mailbox.Head, next time.Time) ([]mailbox.Head, time.Time) { return h, next.Add(time.Second) }}, "the first is due at"},
		"a count too many":              {&broken{counts: func(c mailbox.Counts) { c.Status[mailbox.Acked]++ }}, "dispatches counted as acked"},
		"a claim that is not counted":   {&broken{claims: func(claims map[string]int) { claims[""]-- }}, "claims counted"},
		"a purge that leaves some":      {&broken{purged: func(q mailbox.PurgeQuery) mailbox.PurgeQuery { q.Statuses = q.Statuses[1:]; return q }}, "dispatches dropped"},
		"a dispatch that is not listed": {&broken{listed: func(d mailbox.Dispatch) bool { return d.Seq != 2 }}, "dispatches listed as"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.broken.Store = mailbox.On(memstore.New())
			got := mailboxtest.Trouble(t.Context(), c.broken, 200)
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("the model says %.2000q, want %q", got, c.want)
			}
		})
	}
}

func longer(c *mailbox.Change) {
	if c.Head.Claim != nil {
		c.Head.Claim.Until = c.Head.Claim.Until.Add(time.Second)
	}
}

func renamed(c *mailbox.Change) {
	for i := range c.Messages {
		c.Messages[i].ID += "x"
	}
}
