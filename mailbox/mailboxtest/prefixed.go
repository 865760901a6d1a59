package mailboxtest

import (
	"context"
	"strings"

	"github.com/mortise-dev/mortise/mailbox"
)

// prefixed is a part of a store: all names in it have a prefix. It serves updates, loads,
// and the listings of one thread.
type prefixed struct {
	mailbox.Store
	prefix string
}

func (p *prefixed) in(id string) string {
	if id == "" {
		return ""
	}
	return p.prefix + id
}

func (p *prefixed) out(id string) string { return strings.TrimPrefix(id, p.prefix) }

func (p *prefixed) Update(ctx context.Context, thread string, need mailbox.Need, decide func(mailbox.State) (mailbox.Change, error)) error {
	return p.Store.Update(ctx, p.in(thread), p.need(need), func(s mailbox.State) (mailbox.Change, error) {
		c, err := decide(p.state(s))
		return p.change(c), err
	})
}

func (p *prefixed) Load(ctx context.Context, thread string, need mailbox.Need) (mailbox.State, error) {
	s, err := p.Store.Load(ctx, p.in(thread), p.need(need))
	return p.state(s), err
}

func (p *prefixed) Find(ctx context.Context, kind mailbox.Kind, id string) (string, bool, error) {
	thread, found, err := p.Store.Find(ctx, kind, p.in(id))
	return p.out(thread), found, err
}

func (p *prefixed) Dispatches(ctx context.Context, q mailbox.DispatchQuery) ([]mailbox.Dispatch, error) {
	q.Thread, q.After.ID = p.in(q.Thread), p.in(q.After.ID)
	list, err := p.Store.Dispatches(ctx, q)
	for i := range list {
		list[i] = p.dispatch(list[i], p.out)
	}
	return list, err
}

func (p *prefixed) Messages(ctx context.Context, thread string, from, limit int) ([]mailbox.Message, error) {
	return p.Store.Messages(ctx, p.in(thread), from, limit)
}

func (p *prefixed) need(n mailbox.Need) mailbox.Need {
	n.Dispatches, n.Runs = mapped(n.Dispatches, p.in), mapped(n.Runs, p.in)
	return n
}

func mapped(list []string, f func(string) string) []string {
	out := make([]string, 0, len(list))
	for _, s := range list {
		out = append(out, f(s))
	}
	return out
}

func (p *prefixed) state(s mailbox.State) mailbox.State {
	s.Head = p.head(s.Head, p.out)
	dispatches, runs := map[string]mailbox.Dispatch{}, map[string]mailbox.Run{}
	for id, d := range s.Dispatches {
		dispatches[p.out(id)] = p.dispatch(d, p.out)
	}
	for id, r := range s.Runs {
		runs[p.out(id)] = p.run(r, p.out)
	}
	s.Dispatches, s.Runs = dispatches, runs
	s.Duplicate, s.Next, s.Holder, s.Queued = p.out(s.Duplicate), p.out(s.Next), p.out(s.Holder), mapped(s.Queued, p.out)
	return s
}

func (p *prefixed) change(c mailbox.Change) mailbox.Change {
	if c.Head != nil {
		h := p.head(*c.Head, p.in)
		c.Head = &h
	}
	for i := range c.Dispatches {
		c.Dispatches[i] = p.dispatch(c.Dispatches[i], p.in)
	}
	for i := range c.Runs {
		c.Runs[i] = p.run(c.Runs[i], p.in)
	}
	return c
}

func (p *prefixed) head(h mailbox.Head, f func(string) string) mailbox.Head {
	h.Thread, h.Latest.ID, h.Open.ID = f(h.Thread), f(h.Latest.ID), f(h.Open.ID)
	if h.Claim != nil {
		c := *h.Claim
		c.Dispatch = f(c.Dispatch)
		h.Claim = &c
	}
	return h
}

func (p *prefixed) dispatch(d mailbox.Dispatch, f func(string) string) mailbox.Dispatch {
	d.ID, d.Thread, d.RunID = f(d.ID), f(d.Thread), f(d.RunID)
	return d
}

func (p *prefixed) run(r mailbox.Run, f func(string) string) mailbox.Run {
	r.ID, r.Thread, r.Dispatch = f(r.ID), f(r.Thread), f(r.Dispatch)
	return r
}
