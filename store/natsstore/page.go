package natsstore

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/mortise-dev/mortise/mailbox"
)

// page has dispatches and runs that are not as they were born, and not in the head, by id.
type page struct {
	Dispatches map[string]item `json:"d,omitempty"`
	Runs       map[string]item `json:"r,omitempty"`
}

// item is a dispatchNow or a runNow as it is written: it is put in many pages and seldom looked at.
type item struct {
	home uint64
	data []byte
}

// UnmarshalJSON implements json.Unmarshaler.
func (x *item) UnmarshalJSON(data []byte) error {
	var at struct {
		Home uint64 `json:"h"`
	}
	if n := homeOf(data); n > 0 {
		at.Home = n
	} else if err := json.Unmarshal(data, &at); err != nil {
		return fmt.Errorf("natsstore: %w", err)
	}
	*x = item{at.Home, slices.Clone(data)}
	return nil
}

// homeOf is the home of an item that begins with it, as all do that are written here.
func homeOf(data []byte) uint64 {
	rest, _ := bytes.CutPrefix(data, []byte(`{"h":`))
	digits, _, _ := bytes.Cut(rest, []byte{','})
	n, _ := strconv.ParseUint(string(digits), 10, 64)
	return n
}

func newPage() page { return page{Dispatches: map[string]item{}, Runs: map[string]item{}} }

func (p page) empty() bool { return len(p.Dispatches)+len(p.Runs) == 0 }

// take takes what another page has, which is later.
func (p page) take(other page) {
	maps.Copy(p.Dispatches, other.Dispatches)
	maps.Copy(p.Runs, other.Runs)
}

// size is how long its items are.
func (p page) size() (n int) {
	for _, x := range p.Dispatches {
		n += len(x.data)
	}
	for _, x := range p.Runs {
		n += len(x.data)
	}
	return n
}

// room is about how long it is when it is written.
func (p page) room() int { return p.size() + (len(p.Dispatches)+len(p.Runs)+1)*idSize }

// Sizes that are enough as a rule.
const (
	idSize   = 48
	itemSize = 512
	headSize = 2048
)

// homes are the first and the last one of what it has.
func (p page) homes() (low, high uint64) {
	low = ^low
	for _, x := range p.Dispatches {
		low, high = min(low, x.home), max(high, x.home)
	}
	for _, x := range p.Runs {
		low, high = min(low, x.home), max(high, x.home)
	}
	return low, high
}

// dispatch finds a dispatch.
func (p page) dispatch(id string) (d dispatchNow, ok bool, err error) {
	x, ok := p.Dispatches[id]
	if ok {
		err = decode(x.data, &d)
	}
	return d, ok, err
}

// run finds a run.
func (p page) run(id string) (r runNow, ok bool, err error) {
	x, ok := p.Runs[id]
	if ok {
		err = decode(x.data, &r)
	}
	return r, ok, err
}

// putDispatch puts a dispatch in.
func (p page) putDispatch(d *dispatchNow) error {
	data, err := together(itemSize, d.add)
	p.Dispatches[d.Fields.ID] = item{d.Home, data}
	return err
}

// putRun puts a run in.
func (p page) putRun(r *runNow) error {
	data, err := together(itemSize, r.add)
	p.Runs[r.Fields.ID] = item{r.Home, data}
	return err
}

// homesPerPage is how many Homes share a page.
const homesPerPage = 64

// page reads the page of a number. One that is not there is empty. What carriers have is later.
func (t *thread) page(ctx context.Context, number uint64) (page, error) {
	if p, ok := t.pages[number]; ok {
		return p, nil
	}
	p := newPage()
	host, hosted := t.doc.Hosts[number]
	switch r, ok := t.doc.Pages[number]; {
	case hosted:
		b, err := t.host(ctx, host)
		if err != nil {
			return page{}, err
		}
		if p, ok = b.Pages[number]; !ok {
			return page{}, gone(mailbox.KindDispatch, host)
		}
	case ok:
		data, err := t.s.at(ctx, r.Seq)
		if err != nil {
			return page{}, err
		}
		if err := decode(data, &p); err != nil {
			return page{}, err
		}
	}
	p.ready()
	t.pages[number] = p
	return p, nil
}

// ready makes the maps.
func (p *page) ready() {
	if p.Dispatches == nil {
		p.Dispatches = map[string]item{}
	}
	if p.Runs == nil {
		p.Runs = map[string]item{}
	}
}

// numbers are those of all pages.
func (d *document) numbers() []uint64 {
	return slices.Sorted(func(yield func(uint64) bool) {
		for n := range d.Pages {
			if !yield(n) {
				return
			}
		}
		for n := range d.Hosts {
			if !yield(n) {
				return
			}
		}
	})
}

// putPage writes a page anew, or forgets one that is empty.
func (t *thread) putPage(ctx context.Context, number uint64, p page) error {
	t.leavePage(number)
	if p.empty() {
		return nil
	}
	data, err := together(p.room(), p.add)
	if err != nil {
		return err
	}
	r, err := t.putData(ctx, data)
	if err == nil {
		t.doc.Pages[number] = r
	}
	return err
}

// leavePage forgets where a page is.
func (t *thread) leavePage(number uint64) {
	if old, ok := t.doc.Pages[number]; ok {
		t.old = append(t.old, old)
	}
	delete(t.doc.Pages, number)
	delete(t.doc.Hosts, number)
}

// putPart writes a record that only the head refers to.
func (t *thread) putPart(ctx context.Context, v any) (ref, error) {
	data, err := encode(v)
	if err != nil {
		return ref{}, err
	}
	return t.putData(ctx, data)
}

func (t *thread) putData(ctx context.Context, data []byte) (ref, error) {
	r, err := t.s.put(ctx, t.id, t.s.names.part(t.id), data)
	if err != nil {
		return ref{}, fmt.Errorf("natsstore: page: %w", err)
	}
	t.made = append(t.made, r)
	return r, nil
}
