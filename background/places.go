package background

import "slices"

// group is the class whose places a class uses. Services leave the places of work free, and work those of housekeeping.
func (c Class) group() Class {
	if c == Detached {
		return Blocking
	}
	return c
}

// places hands out the right to run, first come, first served, but for tasks
// whose thread has all that it may have: they are passed over until it has room.
// The Manager's lock guards it.
type places struct {
	all, perThread int
	used           map[slot]int
	queue          []*Task
}

// slot counts the places of a thread, or of all if the thread is empty.
type slot struct {
	thread string
	class  Class
}

func newPlaces(all, perThread int) places {
	return places{all: all, perThread: perThread, used: map[slot]int{}}
}

// enter gives t a place, or puts it into the queue.
func (p *places) enter(t *Task) {
	if !p.give(t) {
		p.queue = append(p.queue, t)
	}
}

// give gives t a place if there is one, and notifies it.
func (p *places) give(t *Task) bool {
	class := t.info.Class.group()
	if p.used[slot{"", class}] >= p.all || p.used[slot{t.info.Thread, class}] >= p.perThread {
		return false
	}
	p.hold(t)
	t.info.Status = Running
	close(t.turn)
	return true
}

// hold gives t a place whether there is one or not.
func (p *places) hold(t *Task) {
	p.add(t, 1)
	t.placed = true
}

// leave frees the place of t, or takes it out of the queue, and gives the place to one that waits.
func (p *places) leave(t *Task) {
	if !t.placed {
		p.queue = slices.DeleteFunc(p.queue, func(o *Task) bool { return o == t })
		return
	}
	p.add(t, -1)
	t.placed = false
	if i := slices.IndexFunc(p.queue, p.give); i >= 0 {
		p.queue = slices.Delete(p.queue, i, i+1)
	}
}

// add changes the number of places that are used by the thread of t, and by all.
func (p *places) add(t *Task, n int) {
	for _, s := range []slot{{"", t.info.Class.group()}, {t.info.Thread, t.info.Class.group()}} {
		if p.used[s] += n; p.used[s] == 0 {
			delete(p.used, s)
		}
	}
}
