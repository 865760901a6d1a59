package extract

import "container/heap"

// picker chooses units greedily. The heap is lazy: a unit's density only falls
// as others are taken, so it is computed again when the unit comes to the top.
type picker struct {
	lex   *lexicon
	units []unit
	heap  []entry
}

type entry struct {
	density float32
	unit    int32
}

func (p *picker) Len() int { return len(p.heap) }
func (p *picker) Less(i, j int) bool {
	if p.heap[i].density != p.heap[j].density {
		return p.heap[i].density > p.heap[j].density
	}
	return p.heap[i].unit < p.heap[j].unit
}
func (p *picker) Swap(i, j int) { p.heap[i], p.heap[j] = p.heap[j], p.heap[i] }
func (p *picker) Push(x any)    { p.heap = append(p.heap, x.(entry)) }
func (p *picker) Pop() any {
	e := p.heap[len(p.heap)-1]
	p.heap = p.heap[:len(p.heap)-1]
	return e
}

// take fills up to room bytes with units that ok admits and whose density is at
// least floor. It returns the bytes that it used and the mean density.
func (p *picker) take(room int, floor float32, ok func(*unit) bool) int {
	p.heap = p.heap[:0]
	for i := range p.units {
		u := &p.units[i]
		if u.taken || !ok(u) {
			continue
		}
		p.heap = append(p.heap, entry{density: u.density(p.lex), unit: int32(i)})
	}
	heap.Init(p)
	used := 0
	for len(p.heap) > 0 {
		top := &p.heap[0]
		u := &p.units[top.unit]
		d := u.density(p.lex)
		if d < top.density*0.999 {
			top.density = d
			heap.Fix(p, 0)
			continue
		}
		if d < floor || d <= 0 {
			break
		}
		heap.Pop(p)
		if used+u.cost() > room+len(separator) {
			continue
		}
		used += u.cost()
		p.mark(u)
	}
	return used
}

func (p *picker) mark(u *unit) {
	u.taken = true
	for _, id := range u.concepts {
		if c := &p.lex.list[id]; c.covered < 8 {
			c.covered++
		}
	}
}
