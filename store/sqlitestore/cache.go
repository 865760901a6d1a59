package sqlitestore

import (
	"bytes"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// Bounds of a cache: entries of each kind, and bytes of what a run of it has.
const (
	cacheEntries = 1024
	cacheData    = 4096
)

// cache is what the writer has written lately, as it would read it again. It holds for one epoch of the
// connection; a thread that is worked on is read from here, unless others write to the file
// meanwhile. It is used by the writer only. A nil cache is always empty.
type cache struct {
	epoch      uint64
	heads      map[string]mailbox.Head
	dispatches map[string]mailbox.Dispatch
	runs       map[string]mailbox.Run
}

// at returns the cache, empty if the epoch is another one.
func (k *cache) at(epoch uint64) *cache {
	if k.epoch != epoch || k.heads == nil {
		k.clear()
		k.epoch = epoch
	}
	return k
}

func (k *cache) clear() {
	if k == nil {
		return
	}
	k.heads, k.dispatches, k.runs = map[string]mailbox.Head{}, map[string]mailbox.Dispatch{}, map[string]mailbox.Run{}
}

func (k *cache) head(id string) (h mailbox.Head, ok bool) {
	if k == nil {
		return h, false
	}
	h, ok = k.heads[id]
	return cachedHead(h), ok
}

func (k *cache) dispatch(id string) (d mailbox.Dispatch, ok bool) {
	if k == nil {
		return d, false
	}
	d, ok = k.dispatches[id]
	return d, ok
}

func (k *cache) run(id string) (r mailbox.Run, ok bool) {
	if k == nil {
		return r, false
	}
	r, ok = k.runs[id]
	return cachedRun(r), ok
}

// put keeps a change that was written.
func (k *cache) put(c mailbox.Change) {
	if len(k.heads) >= cacheEntries || len(k.dispatches) >= cacheEntries || len(k.runs) >= cacheEntries {
		k.clear()
	}
	k.heads[c.Head.Thread] = cachedHead(*c.Head)
	for i := range c.Dispatches {
		k.dispatches[c.Dispatches[i].ID] = cachedDispatch(c.Dispatches[i])
	}
	for i := range c.Runs {
		r := c.Runs[i]
		delete(k.runs, r.ID)
		if len(r.Data) <= cacheData {
			k.runs[r.ID] = cachedRun(r)
		}
	}
}

// rounded is a time as it comes back from the file.
func rounded(t time.Time) time.Time {
	if t.IsZero() {
		return time.Time{}
	}
	return time.UnixMilli(t.UnixMilli()).UTC()
}

func cachedHead(h mailbox.Head) mailbox.Head {
	if h.Claim != nil {
		c := *h.Claim
		c.Until = rounded(c.Until)
		h.Claim = &c
	}
	h.Latest.WaitUntil, h.Open.WaitUntil = rounded(h.Latest.WaitUntil), rounded(h.Open.WaitUntil)
	h.ReservedUntil, h.DueAt, h.UpdatedAt = rounded(h.ReservedUntil), rounded(h.DueAt), rounded(h.UpdatedAt)
	return h
}

func cachedDispatch(d mailbox.Dispatch) mailbox.Dispatch {
	d.Request = nil
	d.AvailableAt, d.CreatedAt, d.UpdatedAt, d.CompletedAt = rounded(d.AvailableAt), rounded(d.CreatedAt), rounded(d.UpdatedAt), rounded(d.CompletedAt)
	return d
}

func cachedRun(r mailbox.Run) mailbox.Run {
	r.WaitUntil, r.CreatedAt, r.StartedAt = rounded(r.WaitUntil), rounded(r.CreatedAt), rounded(r.StartedAt)
	r.FinishedAt, r.UpdatedAt = rounded(r.FinishedAt), rounded(r.UpdatedAt)
	r.Input, r.Data = slices.Clone(r.Input), bytes.Clone(r.Data)
	if len(r.Input) == 0 {
		r.Input = nil
	}
	if len(r.Data) == 0 {
		r.Data = nil
	}
	return r
}
