package natsstore

import (
	"context"
	"slices"
)

// Bounds of what a head carries before it goes to pages, if no birth takes it.
const (
	carried      = 64
	carriedBytes = 64 << 10
)

// file moves what a head carries to pages, if it is much. What is being carried out stays.
func (t *thread) file(ctx context.Context) error {
	if len(t.doc.Dispatches)+len(t.doc.Runs) <= carried && t.doc.size() <= carriedBytes {
		return nil
	}
	p, err := t.takeOut(func(d *dispatchNow) bool {
		c := t.doc.Head.Claim
		return c == nil || c.Dispatch != d.Fields.ID
	}, func(r *runNow) bool {
		return r.Fields.ID != t.doc.Head.Open.ID && r.Fields.ID != t.doc.Head.Latest.ID
	})
	if err != nil {
		return err
	}
	pages, err := t.merge(ctx, p)
	if err != nil {
		return err
	}
	for n, p := range pages {
		if err := t.putPage(ctx, n, p); err != nil {
			return err
		}
	}
	return nil
}

// takeOut takes some of what a head carries out of it.
func (t *thread) takeOut(dispatch func(*dispatchNow) bool, run func(*runNow) bool) (page, error) {
	p := newPage()
	for id, d := range t.doc.Dispatches {
		if !dispatch(&d) {
			continue
		}
		if err := p.putDispatch(&d); err != nil {
			return page{}, err
		}
		delete(t.doc.Dispatches, id)
	}
	for id, r := range t.doc.Runs {
		if !run(&r) {
			continue
		}
		if err := p.putRun(&r); err != nil {
			return page{}, err
		}
		delete(t.doc.Runs, id)
	}
	return p, nil
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

// merge puts what carriers have into pages, and then p, which is later than all of it. It returns the pages that changed; they are to
// be written.
func (t *thread) merge(ctx context.Context, p page) (map[uint64]page, error) {
	loads, err := t.allLoads(ctx)
	if err != nil {
		return nil, err
	}
	t.doc.Carriers = nil
	changed := map[uint64]page{}
	into := func(x item) (page, error) {
		n := x.home / homesPerPage
		p, err := t.page(ctx, n)
		changed[n] = p
		return p, err
	}
	for _, load := range append(loads, p) {
		for id, x := range load.Dispatches {
			to, err := into(x)
			if err != nil {
				return nil, err
			}
			to.Dispatches[id] = x
		}
		for id, x := range load.Runs {
			to, err := into(x)
			if err != nil {
				return nil, err
			}
			to.Runs[id] = x
		}
	}
	return changed, nil
}

// search looks where what is not in the head may be if it has that home, the latest first, until it is found.
func (t *thread) search(ctx context.Context, home uint64, look func(page) (found bool, err error)) error {
	for _, c := range slices.Backward(t.doc.Carriers) {
		if home < c.Low || home > c.Low+c.Span {
			continue
		}
		p, err := t.load(ctx, c)
		if err != nil {
			return err
		}
		if found, err := look(p); found || err != nil {
			return err
		}
	}
	p, err := t.page(ctx, home/homesPerPage)
	if err != nil {
		return err
	}
	_, err = look(p)
	return err
}

// pastDispatch finds a dispatch that is not in the head, by its home.
func (t *thread) pastDispatch(ctx context.Context, home uint64, id string) (d dispatchNow, found bool, err error) {
	err = t.search(ctx, home, func(p page) (bool, error) {
		d, found, err = p.dispatch(id)
		return found, err
	})
	return d, found, err
}

// pastRun finds a run that is not in the head, by its home.
func (t *thread) pastRun(ctx context.Context, home uint64, id string) (r runNow, found bool, err error) {
	err = t.search(ctx, home, func(p page) (bool, error) {
		r, found, err = p.run(id)
		return found, err
	})
	return r, found, err
}

// filed is all that is in pages, and with carriers, as it is.
func (t *thread) filed(ctx context.Context) (dispatches map[string]dispatchNow, runs map[string]runNow, err error) {
	var list []page
	for _, n := range t.doc.numbers() {
		p, err := t.page(ctx, n)
		if err != nil {
			return nil, nil, err
		}
		list = append(list, p)
	}
	loads, err := t.allLoads(ctx)
	if err != nil {
		return nil, nil, err
	}
	dispatches, runs = map[string]dispatchNow{}, map[string]runNow{}
	for _, p := range append(list, loads...) {
		if err := p.addTo(dispatches, runs); err != nil {
			return nil, nil, err
		}
	}
	return dispatches, runs, nil
}

func (p page) addTo(dispatches map[string]dispatchNow, runs map[string]runNow) (err error) {
	for id := range p.Dispatches {
		if dispatches[id], _, err = p.dispatch(id); err != nil {
			return err
		}
	}
	for id := range p.Runs {
		if runs[id], _, err = p.run(id); err != nil {
			return err
		}
	}
	return nil
}
