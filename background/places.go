package background

import "slices"

// kind groups the classes that share places. Services leave the places of work free,
// and work those of housekeeping.
type kind int

const (
	work kind = iota
	service
	housekeeping
)

func (c Class) kind() kind {
	switch c {
	case Service:
		return service
	case Housekeeping:
		return housekeeping
	default:
		return work
	}
}

// places hands out the right to run, first come, first served, but for tasks
// whose thread has all that it may have: they are passed over until it has room.
// The Manager's lock guards it.
type places struct {
	all, perThread int
	running        [housekeeping + 1]int
	byThread       map[threadKind]int
	queue          []*Task
}

type threadKind struct {
	thread string
	kind   kind
}

func newPlaces(all, perThread int) places {
	return places{all: all, perThread: perThread, byThread: map[threadKind]int{}}
}

// enter gives t a place, or puts it into the queue: at the front when it had a
// place before.
func (p *places) enter(t *Task, front bool) {
	switch {
	case p.give(t):
	case front:
		p.queue = slices.Insert(p.queue, 0, t)
	default:
		p.queue = append(p.queue, t)
	}
}

// give gives t a place if there is one, and notifies it.
func (p *places) give(t *Task) bool {
	k := t.spec.Class.kind()
	tk := threadKind{t.spec.Thread, k}
	if p.running[k] >= p.all || p.byThread[tk] >= p.perThread {
		return false
	}
	p.running[k]++
	p.byThread[tk]++
	t.placed = true
	if t.info.Status == Queued {
		t.info.Status = Running
	}
	close(t.turn)
	return true
}

// leave frees the place of t, or takes it out of the queue, and gives places to
// those that wait.
func (p *places) leave(t *Task) {
	if !t.placed {
		if i := slices.Index(p.queue, t); i >= 0 {
			p.queue = slices.Delete(p.queue, i, i+1)
		}
		return
	}
	t.placed = false
	k := t.spec.Class.kind()
	tk := threadKind{t.spec.Thread, k}
	p.running[k]--
	p.byThread[tk]--
	if p.byThread[tk] == 0 {
		delete(p.byThread, tk)
	}
	// One place was freed, so one task at most can take it.
	for i, next := range p.queue {
		if p.give(next) {
			p.queue = slices.Delete(p.queue, i, i+1)
			return
		}
	}
}
