package guest

// piece is a range of an event's messages whose encodings stand one behind the other.
type piece struct {
	// n is how many there are, missing that they are not kept.
	n       int
	missing bool
	// data are the encodings. ends are where each ends, counted as start is, which is where
	// the first begins.
	data  []byte
	start int
	ends  []int
	// marks are what the index says of them.
	marks []byte
}

// item is one encoding.
func (p *piece) item(i int) []byte { return p.items(i, i+1) }

// items are the encodings from from (included) to to (excluded).
func (p *piece) items(from, to int) []byte {
	start := 0
	if from > 0 {
		start = p.ends[from-1] - p.start
	}
	end := start
	if to > from {
		end = p.ends[to-1] - p.start
	}
	return p.data[start:end]
}

// cut is the part of the piece that lies between two places, counted from its first item.
func (p *piece) cut(from, to int64) []byte {
	from, to = max(from, 0), min(to, int64(p.n))
	if from >= to {
		return nil
	}
	return p.items(int(from), int(to))
}

// Size implements host.Items.
func (p *packedEvent) Size(from, to uint32) (n int, ok bool) {
	first, end := int64(from), int64(to)
	if first > end {
		return 0, false
	}
	for i := range p.pieces {
		c := &p.pieces[i]
		n += len(c.cut(first, end))
		first, end = first-int64(c.n), end-int64(c.n)
	}
	return n, end <= 0
}

// Copy implements host.Items.
func (p *packedEvent) Copy(dst []byte, from, to uint32) {
	first, end := int64(from), int64(to)
	for i := range p.pieces {
		c := &p.pieces[i]
		dst = dst[copy(dst, c.cut(first, end)):]
		first, end = first-int64(c.n), end-int64(c.n)
	}
}
