package future

import (
	"github.com/mortise-dev/mortise/compaction/eval"
)

// Schema names the format of a report.
const Schema = "mortise.compact_future.v1"

// Report is what a run measured.
type Report struct {
	Schema  string          `json:"schema"`
	Windows []WindowSummary `json:"windows"`
	// Rows are in the order of contenders, sizes and chains, the vendor's first.
	Rows []Row `json:"rows"`
}

// WindowSummary is a window that was measured.
type WindowSummary struct {
	Session string `json:"session"`
	// Bytes and Messages are what was compacted.
	Bytes    int `json:"bytes"`
	Messages int `json:"messages"`
	// VendorBytes is the size of the vendor's own summary.
	VendorBytes int      `json:"vendor_bytes"`
	Partial     bool     `json:"partial,omitempty"`
	Needed      []string `json:"needed"`
}

// Row is a contender at a size.
type Row struct {
	Contender string    `json:"contender"`
	Kind      eval.Kind `json:"kind"`
	Size      Size      `json:"size"`
	Chain     int       `json:"chain"`
	Windows   int       `json:"windows"`
	Facts     int       `json:"facts"`
	// Whole are the windows whose texts are held against the log: of a partial one
	// the log does not hold everything.
	Whole int `json:"whole"`
	// Strict, Lenient and Grounded are shares of the needed facts; the last one of
	// those that something could ground.
	Strict   Share `json:"strict"`
	Lenient  Share `json:"lenient"`
	Grounded Share `json:"grounded"`
	Statements
	// Cost is the price of the calls behind the compaction, as a share of what they
	// would have cost without one. A vendor's summary includes the call that wrote
	// it.
	Cost Share `json:"cost"`
	// Bytes is how long the texts are, as a share of what was compacted.
	Bytes float64 `json:"bytes"`
	// Failures and Overruns count compactions that failed or were too long.
	Failures int    `json:"failures,omitempty"`
	Overruns int    `json:"overruns,omitempty"`
	Error    string `json:"error,omitempty"` // the first failure's
}

func (r *Report) window(s *subject) {
	w := WindowSummary{Session: s.Session, Bytes: s.bytes, Messages: len(s.Before), VendorBytes: len(s.Vendor), Partial: s.Partial}
	for _, f := range s.Needed {
		w.Needed = append(w.Needed, f.Text)
	}
	r.Windows = append(r.Windows, w)
}

// Find returns a row.
func (r *Report) Find(contender string, size Size, chain int) (*Row, bool) {
	for i := range r.Rows {
		if w := &r.Rows[i]; w.Contender == contender && w.Size == size && w.Chain == chain {
			return w, true
		}
	}
	return nil, false
}

// row is a row while it is summed up.
type row struct {
	Row
	strict, lenient, grounded, cost, bytes []count
}

func newRow(contender string, k eval.Kind, size Size, chain int) *row {
	return &row{Row: Row{Contender: contender, Kind: k, Size: size, Chain: chain}}
}

func (r *row) add(s *subject, text string, p Prices, model bool) {
	n := s.recall(text)
	r.Windows++
	r.Facts += n.Needed
	r.strict = append(r.strict, count{float64(n.Strict), float64(n.Needed)})
	r.lenient = append(r.lenient, count{float64(n.Lenient), float64(n.Needed)})
	r.grounded = append(r.grounded, count{float64(n.Grounded), float64(n.Groundable)})
	r.cost = append(r.cost, count{p.behind(&s.Window, tokensOf(text), model), p.whole(&s.Window)})
	r.bytes = append(r.bytes, count{float64(len(text)), float64(s.bytes)})
	if s.Partial {
		return
	}
	r.Whole++
	stated := s.state(text)
	r.Statements.add(&stated)
}

func (r *row) failed(err error) {
	r.Failures++
	if r.Error == "" {
		r.Error = err.Error()
	}
}

func (r *row) done() Row {
	r.Strict, r.Lenient, r.Grounded, r.Cost = shareOf(r.strict), shareOf(r.lenient), shareOf(r.grounded), shareOf(r.cost)
	r.Bytes = pooled(r.bytes, nil)
	return r.Row
}
