package natsstore

import (
	"container/list"
	"context"
	"maps"
	"sync"
)

// Bounds of what is kept of threads to save reads.
const (
	keptBirths  = 256
	fewBirths   = 8
	keptBirth   = 64 << 10
	keptPages   = 2
	pageWeight  = 32 << 10
	loadWeight  = 2 << 10
	birthWeight = 512
)

// cache keeps threads as this process last wrote, heard or read them. Whoever takes one has it alone. What is kept may be old: an update that
// starts from it is only made if the head that it writes is still the next one.
type cache struct {
	most int

	mu     sync.Mutex
	recent *list.List // of *kept, the latest in front
	by     map[string]*list.Element
	size   int
}

type kept struct {
	*thread

	weight int
}

func newCache(most int) *cache {
	return &cache{most: most, recent: list.New(), by: map[string]*list.Element{}}
}

// take takes a thread out, if it is not older than a head of that number.
func (c *cache) take(id string, seq uint64) *thread {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.by[id]
	if !ok {
		return nil
	}
	k := c.remove(e)
	if k.head.Seq < seq {
		return nil
	}
	return k.thread
}

// keep puts a thread in, unless a later one is there, whose head has size bytes.
func (c *cache) keep(t *thread, size int) {
	t.rest()
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.by[t.id]; ok {
		if old, ok := e.Value.(*kept); ok && old.head.Seq >= t.head.Seq {
			return
		}
		for k, b := range c.remove(e).kept {
			if _, ok := t.kept[k]; !ok {
				t.kept[k] = b
			}
		}
	}
	k := &kept{t, 2*size + pageWeight*len(t.pages) + loadWeight*len(t.loads)}
	if t.doc.waiting != nil {
		k.weight += entryWeight * t.doc.waiting.turns.Len()
	}
	for _, b := range t.kept {
		k.weight += birthWeight + 2*b.size
	}
	c.by[t.id] = c.recent.PushFront(k)
	c.size += k.weight
	for c.size > c.most {
		c.remove(c.recent.Back())
	}
}

func (c *cache) remove(e *list.Element) *kept {
	k, _ := c.recent.Remove(e).(*kept)
	delete(c.by, k.id)
	c.size -= k.weight
	return k
}

// rest forgets what is only of use within one update, or much.
func (t *thread) rest() {
	for k, b := range t.births {
		if b != nil && b.Thread == t.id && b.size <= keptBirth {
			b.raw, b.Load, b.Pages = nil, nil, nil
			t.kept[k] = b
		}
	}
	if len(t.kept) > min(keptBirths, fewBirths+2*(t.doc.waiting.len()+len(t.doc.Dispatches))) {
		maps.DeleteFunc(t.kept, func(k birthKey, b *born) bool {
			seq, _ := t.doc.birthOf(k)
			return seq != b.ref.Seq
		})
	}
	for k := range t.kept {
		if len(t.kept) <= keptBirths {
			break
		}
		delete(t.kept, k)
	}
	if w := t.doc.waiting; w != nil && w.pages.Len() > 0 { // the shelf has it
		t.doc = t.written()
		t.doc.waiting = nil
	}
	t.restLoads()
	latest := t.doc.Head.Seq / homesPerPage
	maps.DeleteFunc(t.pages, func(n uint64, _ page) bool { return n+keptPages <= latest })
	clear(t.births)
	clear(t.blobs)
	t.index, t.old, t.made = index{}, nil, nil
	t.guess, t.assumed, t.head.data = false, nil, nil
}

// turns lets the updates of a thread in this process take turns, so that they do not overtake one another.
type turns struct {
	mu sync.Mutex
	of map[string]*turn
}

type turn struct {
	free  chan struct{}
	users int
	// later is done when the turn under way is over.
	later []func()
}

// after does something when the turn of a thread is over, if there is one.
func (t *turns) after(id string, do func()) {
	t.mu.Lock()
	x, ok := t.of[id]
	if ok {
		x.later = append(x.later, do)
	}
	t.mu.Unlock()
	if !ok {
		do()
	}
}

// take waits for the turn of a thread. It fails when ctx is over.
func (t *turns) take(ctx context.Context, id string) (leave func(), err error) {
	t.mu.Lock()
	x, ok := t.of[id]
	if !ok {
		x = &turn{free: make(chan struct{}, 1)}
		t.of[id] = x
	}
	x.users++
	t.mu.Unlock()
	done := func() {
		t.mu.Lock()
		later := x.later
		x.later = nil
		x.users--
		if x.users == 0 {
			delete(t.of, id)
		}
		t.mu.Unlock()
		for _, do := range later {
			do()
		}
	}
	select {
	case x.free <- struct{}{}:
		return func() { <-x.free; done() }, nil
	case <-ctx.Done():
		done()
		return nil, context.Cause(ctx)
	}
}
