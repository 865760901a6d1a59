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
