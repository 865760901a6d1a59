package natsstore

import (
	"context"
	"maps"
	"slices"

	"github.com/mortise-dev/mortise/mailbox"
)

// Bounds of what births carry. The fourth load in a row takes the three before it along, so that a head has few carriers. What sixteen had goes to pages, which the
// last of them has; pages of more bytes than that are records of their own.
const (
	joined      = 4
	mostCarried = 16
	hostedBytes = 256 << 10
)

// carry lets the birth of a dispatch take what the head carries and will not change any more: it is written once then, with a record that is
// written anyhow, and not with each head. The head only says where it is. A birth that came to nothing takes nothing with it: the head
// that was to say so was not written.
func (w *writing) carry(ctx context.Context, host *born) error {
	if w.carries {
		return nil
	}
	load, err := w.ended()
	if err != nil || load.empty() {
		return err
	}
	w.carries = true
	loads := 1
	for _, c := range w.doc.Carriers {
		loads += 1 + c.More
	}
	if loads < mostCarried {
		return w.hostLoad(ctx, host, load)
	}
	pages, err := w.merge(ctx, load)
	if err != nil {
		return err
	}
	return w.hostPages(ctx, host, pages)
}

// hostLoad puts a load into a birth, with those of carriers that go with it.
func (w *writing) hostLoad(ctx context.Context, host *born, load page) error {
	list, more := w.doc.Carriers, 0
	for from := len(list) - joined + 1; from >= 0 && list[from].More == more; from = len(list) - joined + 1 {
		all := newPage()
		for _, c := range list[from:] {
			p, err := w.load(ctx, c)
			if err != nil {
				return err
			}
			all.take(p)
		}
		all.take(load)
		load, list, more = all, list[:from], joined*(more+1)-1
	}
	id := host.Dispatch.ID
	low, high := load.homes()
	own := carrier{Host: id, Low: low, Span: high - low, Gap: int64(host.Home) - int64(high+1), More: more} //nolint:gosec // they count dispatches
	w.doc.Carriers = append(slices.Clip(list), own)
	host.Load, w.loads[id] = &load, load
	return nil
}

// hostPages puts pages into a birth, or writes them if they are long.
func (w *writing) hostPages(ctx context.Context, host *born, pages map[uint64]page) error {
	host.Pages = map[uint64]page{}
	for n, p := range pages {
		if p.size() > hostedBytes {
			if err := w.putPage(ctx, n, p); err != nil {
				return err
			}
			continue
		}
		w.leavePage(n)
		w.doc.Hosts[n] = host.Dispatch.ID
		host.Pages[n] = p
	}
	return nil
}

// room is about how long what it carries is.
func (b *birth) room() (n int) {
	if b.Load != nil {
		n = b.Load.room()
	}
	for _, p := range b.Pages {
		n += p.room()
	}
	return n
}

// ended takes out of the head what has ended, and is not changed by what is being written.
func (w *writing) ended() (page, error) {
	changes := map[string]bool{}
	for i := range w.change.Dispatches {
		changes[w.change.Dispatches[i].ID] = true
	}
	runs := map[string]bool{w.change.Head.Open.ID: true, w.change.Head.Latest.ID: true}
	for i := range w.change.Runs {
		runs[w.change.Runs[i].ID] = true
	}
	if c := w.change.Head.Claim; c != nil {
		changes[c.Dispatch] = true
	}
	return w.takeOut(func(d *dispatchNow) bool {
		return d.Fields.Status.Terminal() && !changes[d.Fields.ID]
	}, func(r *runNow) bool {
		return r.Fields.Status == mailbox.RunDone && !runs[r.Fields.ID]
	})
}

// load reads what a carrier has.
func (t *thread) load(ctx context.Context, c carrier) (page, error) {
	if p, ok := t.loads[c.Host]; ok {
		return p, nil
	}
	b, err := t.host(ctx, c.Host)
	if err != nil {
		return page{}, err
	}
	return t.unload(c, b)
}

// unload takes the load out of a birth, if it is the one that the head refers to.
func (t *thread) unload(c carrier, b *born) (page, error) {
	if b == nil || b.Thread != t.id || b.Load == nil || b.Home != c.Low+c.Span+1+uint64(c.Gap) { //nolint:gosec // it wraps around
		return page{}, gone(mailbox.KindDispatch, c.Host)
	}
	t.loads[c.Host] = *b.Load
	return *b.Load, nil
}

// host reads a birth that has a load or pages. Unlike others it is never guessed.
func (t *thread) host(ctx context.Context, id string) (*born, error) {
	b, err := t.s.birth(ctx, mailbox.KindDispatch, id)
	if err == nil && (b == nil || b.Thread != t.id) {
		err = gone(mailbox.KindDispatch, id)
	}
	return b, err
}

// allLoads reads what all carriers have, in their order.
func (t *thread) allLoads(ctx context.Context) (list []page, err error) {
	var keys []birthKey
	var of []carrier
	for _, c := range t.doc.Carriers {
		if _, ok := t.loads[c.Host]; !ok {
			keys, of = append(keys, birthKey{mailbox.KindDispatch, c.Host}), append(of, c)
		}
	}
	found, err := t.s.births(ctx, keys)
	if err != nil {
		return nil, err
	}
	for i, b := range found {
		if _, err := t.unload(of[i], b); err != nil {
			return nil, err
		}
	}
	for _, c := range t.doc.Carriers {
		list = append(list, t.loads[c.Host])
	}
	return list, nil
}

// restLoads forgets the loads that are in pages by now.
func (t *thread) restLoads() {
	if len(t.loads) <= len(t.doc.Carriers) {
		return
	}
	needed := map[string]bool{}
	for _, c := range t.doc.Carriers {
		needed[c.Host] = true
	}
	maps.DeleteFunc(t.loads, func(host string, _ page) bool { return !needed[host] })
}
