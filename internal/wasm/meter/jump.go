package meter

// before is the instruction that stands as many before the present one: 1 or 2.
func (p *pricing) before(n int) (i instruction) {
	c := &cursor{b: p.body, pos: p.starts[len(p.starts)-n]}
	c.next(&i)
	return i
}

// labelled notes where the br_table of a dispatch leads to, if its index is a local
// and nothing more.
func (p *pricing) labelled(d *dispatch, table *instruction) {
	loop, index := &p.frames[d.outside-1], p.before(1)
	if p.scan.selector != 1 || index.op != opLocalGet || !loop.bare {
		return
	}
	c := &cursor{b: table.raw, pos: 1}
	for range c.count(1) + 1 {
		d.labels = append(d.labels, c.u32())
	}
	d.local, loop.jumps = index.index, d
}

// direct leads a jump past the header of a dispatch loop, if the number of the piece
// that it wants was set just before and that piece lies ahead: Go's compiler makes such a
// jump of every if. No circle gets round the header's site this way, and the engine
// needs no table.
func (p *pricing) direct(br *instruction) {
	depth := len(p.frames) - 1
	if int64(br.index) > int64(depth) {
		return // for the engine to refuse
	}
	d := p.frames[depth-int(br.index)].jumps
	if d == nil {
		return
	}
	number, set := p.before(2), p.before(1)
	if number.op != opI32Const || set.op != opLocalSet || set.index != d.local {
		return
	}
	value := uint32((&cursor{b: number.raw, pos: 1}).i32())
	label := d.labels[min(int64(value), int64(len(d.labels)-1))]
	if int64(label) >= int64(d.blocks) {
		return // the header, or what is around it
	}
	piece := d.outside + d.blocks - 1 - int(label)
	if piece <= depth && p.frames[piece].dispatch == d {
		changed := *br
		changed.raw = appendU32([]byte{opBr}, uint32(depth-piece))
		p.changed = append(p.changed, changed)
	}
}
