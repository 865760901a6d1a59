package natsstore

import (
	"context"
	"fmt"
)

// Bounds of what a head carries before it goes to pages.
const (
	carried      = 64
	carriedBytes = 64 << 10
)

// file moves what a head carries to pages, if it is much. What is being carried out stays.
func (t *thread) file(ctx context.Context) error {
	if len(t.doc.Dispatches)+len(t.doc.Runs) <= carried && t.doc.size() <= carriedBytes {
		return nil
	}
	pages := map[uint64]page{}
	into := func(home uint64) (page, error) {
		n := home / homesPerPage
		p, err := t.page(ctx, n)
		pages[n] = p
		return p, err
	}
	for id, d := range t.doc.Dispatches {
		if c := t.doc.Head.Claim; c != nil && c.Dispatch == id {
			continue
		}
		p, err := into(d.Home)
		if err != nil {
			return err
		}
		p.Dispatches[id] = d
		delete(t.doc.Dispatches, id)
	}
	for id, r := range t.doc.Runs {
		if id == t.doc.Head.Open.ID || id == t.doc.Head.Latest.ID {
			continue
		}
		p, err := into(r.Home)
		if err != nil {
			return err
		}
		p.Runs[id] = r
		delete(t.doc.Runs, id)
	}
	for n, p := range pages {
		if err := t.putPage(ctx, n, p); err != nil {
			return err
		}
	}
	return nil
}

// size is about how long the texts are that a head carries.
func (d *document) size() (n int) {
	for _, x := range d.Dispatches {
		n += len(x.Fields.LastError) + len(x.Fields.Response) + len(x.Fields.RunError)
	}
	for _, x := range d.Runs {
		n += len(x.Fields.Output) + len(x.Fields.Error) + len(x.Data.Data)
		for _, id := range x.Fields.Input {
			n += len(id)
		}
	}
	return n
}

// putPage writes a page anew, or forgets one that is empty.
func (t *thread) putPage(ctx context.Context, number uint64, p page) error {
	if old, ok := t.doc.Pages[number]; ok {
		t.old = append(t.old, old)
	}
	if len(p.Dispatches)+len(p.Runs) == 0 {
		delete(t.doc.Pages, number)
		return nil
	}
	r, err := t.putPart(ctx, p)
	if err == nil {
		t.doc.Pages[number] = r
	}
	return err
}

// putPart writes a record that only the head refers to.
func (t *thread) putPart(ctx context.Context, v any) (ref, error) {
	data, err := encode(v)
	if err != nil {
		return ref{}, err
	}
	r, err := t.s.put(ctx, t.id, t.s.names.part(t.id), data)
	if err != nil {
		return ref{}, fmt.Errorf("natsstore: page: %w", err)
	}
	t.made = append(t.made, r)
	return r, nil
}
