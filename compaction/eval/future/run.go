package future

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/eval"
)

// Config is what is measured.
type Config struct {
	Windows    []Window
	Contenders []eval.Contender
	// Sizes are those of [Sizes] when there are none.
	Sizes []Size
	// Chains are how many compactions follow each other, 1 and 8 when there are
	// none.
	Chains []int
	// Least is how many facts a window needs at least, 8 when it is 0.
	Least int
	// Prices are the default ones when they are zero.
	Prices Prices
	// Complete adds to a request what a host keeps besides the messages. It gets all
	// messages up to the end of the range. May be nil.
	Complete func(r *abi.SummarizeRequest, said []abi.Message)
	// Progress is called before each compaction and at the end. May be nil.
	Progress func(eval.Progress)
}

const (
	defaultLeast    = 8
	defaultPerToken = 3.6
	maxChain        = 1000
)

// ErrNoWindows means that no window has enough facts.
var ErrNoWindows = errors.New("future: no compaction is followed by enough needed facts")

// Names of the vendor's own summary among the contenders, and of the same after compaction.Repair, which may
// add RepairTokens.
const (
	Vendor       = "vendor"
	Repaired     = "vendor, repaired"
	RepairTokens = 650
)

// Run measures the vendor's own summaries and the contenders. It fails on a config
// that cannot be measured, and when its context ends; a contender's failure is
// counted in its row.
func Run(ctx context.Context, c Config) (*Report, error) {
	r, err := newRunner(c)
	if err != nil {
		return nil, err
	}
	r.vendor()
	for i := range c.Contenders {
		for _, size := range r.cfg.Sizes {
			for _, chain := range r.cfg.Chains {
				if err := r.row(ctx, &c.Contenders[i], size, chain); err != nil {
					return nil, err
				}
			}
		}
	}
	r.cfg.Progress(r.progress)
	return r.report, nil
}

type runner struct {
	cfg      Config
	subjects []*subject
	report   *Report
	progress eval.Progress
}

func newRunner(c Config) (*runner, error) {
	c.Least = cmp.Or(c.Least, defaultLeast)
	if len(c.Sizes) == 0 {
		c.Sizes = Sizes()
	}
	if len(c.Chains) == 0 {
		c.Chains = []int{1, 8}
	}
	if c.Prices == (Prices{}) {
		c.Prices = DefaultPrices()
	}
	if c.Progress == nil {
		c.Progress = func(eval.Progress) {}
	}
	for _, k := range c.Chains {
		if k < 1 || k > maxChain {
			return nil, fmt.Errorf("future: Config.Chains: %d must be from 1 to %d", k, maxChain)
		}
	}
	r := &runner{cfg: c, report: &Report{Schema: Schema}}
	for _, w := range c.Windows {
		if len(w.Needed) < c.Least {
			continue
		}
		s := newSubject(w)
		r.subjects = append(r.subjects, s)
		r.report.window(s)
	}
	if len(r.subjects) == 0 {
		return nil, ErrNoWindows
	}
	for _, k := range c.Chains {
		for _, s := range r.subjects {
			r.progress.All += len(eval.Split(s.Before, k))
		}
	}
	r.progress.All *= len(c.Contenders) * len(c.Sizes)
	return r, nil
}

// vendor measures the vendor's own texts.
func (r *runner) vendor() {
	row := newRow(Vendor, eval.KindBaseline, Size{}, 1)
	for _, s := range r.subjects {
		row.add(s, s.Vendor, r.cfg.Prices, true)
	}
	r.report.Rows = append(r.report.Rows, row.done())
	row = newRow(Repaired, eval.KindBaseline, Size{}, 1)
	for _, s := range r.subjects {
		text, _ := compaction.Repair(s.Vendor, s.Before, nil, RepairTokens)
		row.add(s, text, r.cfg.Prices, true)
	}
	r.report.Rows = append(r.report.Rows, row.done())
}

// row measures a contender at a size and a length of chain.
func (r *runner) row(ctx context.Context, c *eval.Contender, size Size, chain int) error {
	row := newRow(c.Name, c.Kind, size, chain)
	for _, s := range r.subjects {
		text, err := r.chain(ctx, row, c, s, size.of(s))
		if err != nil {
			return fmt.Errorf("future: %s: %w", c.Name, err)
		}
		row.add(s, text, r.cfg.Prices, false)
	}
	r.report.Rows = append(r.report.Rows, row.done())
	return nil
}

// chain compacts a window part by part; only the text is handed on.
func (r *runner) chain(ctx context.Context, row *row, c *eval.Contender, s *subject, size int) (string, error) {
	var previous *string
	said := 0
	for _, part := range eval.Split(s.Before, row.Chain) {
		r.progress.Set, r.progress.Contender, r.progress.Subject = row.Size.String(), c.Name, s.Session
		r.cfg.Progress(r.progress)
		said += len(part)
		q := &abi.SummarizeRequest{
			ThreadID: s.Session, Messages: part, PreviousSummary: previous,
			BudgetTokens: max(1, int64(float64(size)/cmp.Or(c.BytesPerToken, defaultPerToken))),
		}
		q.Masking = &abi.Masking{ViewTokens: int64(float64(len(eval.Flatten(part))) / cmp.Or(c.BytesPerToken, defaultPerToken)), GoalTokens: q.BudgetTokens}
		q.ReadFiles, q.ModifiedFiles = compaction.FileOperations(s.Before[:said])
		if r.cfg.Complete != nil {
			r.cfg.Complete(q, s.Before[:said])
		}
		answer, err := c.Summarizer.Summarize(ctx, q)
		r.progress.Done++
		switch {
		case ctx.Err() != nil:
			return "", ctx.Err()
		case err == nil && answer.Declined != "":
			err = errors.New("declined: " + answer.Declined)
		}
		if err != nil {
			row.failed(err)
			continue
		}
		text := compaction.Remains(q, answer)
		if len(answer.Masks) == 0 { // masks end where nothing is left to mask
			if len(text) > size {
				row.Overruns++
			}
			text = cut(text, size)
		}
		previous = &text
	}
	if previous == nil {
		return "", nil
	}
	return *previous, nil
}

// cut shortens a text to n bytes, between characters.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}
