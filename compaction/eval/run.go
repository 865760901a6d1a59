package eval

import (
	"context"
	"errors"
	"fmt"
	"math"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// Run measures everything that the config names. The report of the same config
// is the same, but for latencies, when the contenders are deterministic.
func Run(ctx context.Context, c Config) (*Report, error) {
	c, err := c.withDefaults()
	if err != nil {
		return nil, err
	}
	r := &runner{cfg: c, report: &Report{Schema: Schema}}
	for i := range c.Sets {
		r.sets = append(r.sets, prepare(&c.Sets[i]))
	}
	r.progress.All = r.total()
	for _, s := range r.sets {
		for i := range c.Contenders {
			if err := r.contender(ctx, s, &c.Contenders[i]); err != nil {
				return nil, fmt.Errorf("eval: set %q: %s: %w", s.set.Name, c.Contenders[i].Name, err)
			}
		}
	}
	c.Progress(r.progress)
	return r.report, nil
}

// runner is one run.
type runner struct {
	cfg      Config
	sets     []*prepared
	report   *Report
	progress Progress
}

// variants are the chains with their growths.
func (r *runner) variants(f func(chain int, g Growth) error) error {
	for _, k := range r.cfg.Chains {
		if k == 1 {
			if err := f(k, ""); err != nil {
				return err
			}
			continue
		}
		for _, g := range r.cfg.Growths {
			if err := f(k, g); err != nil {
				return err
			}
		}
	}
	return nil
}

// total is how many compactions there will be.
func (r *runner) total() int {
	n := 0
	for _, s := range r.sets {
		for _, sub := range s.subjects {
			_ = r.variants(func(chain int, _ Growth) error {
				n += len(Split(sub.messages, chain))
				return nil
			})
		}
	}
	return n * len(r.cfg.Contenders) * len(r.cfg.Budgets)
}

// contender measures one contender on one set.
func (r *runner) contender(ctx context.Context, s *prepared, c *Contender) error {
	for _, b := range r.cfg.Budgets {
		err := r.variants(func(chain int, g Growth) error {
			t := &tally{cell: Cell{
				Set: s.set.Name, Contender: c.Name, Kind: c.Kind, Budget: b, Chain: chain, Growth: g, Unstated: s.unstated,
				Structure: Structure{Failed: map[Check]int{}},
			}}
			for _, sub := range s.subjects {
				if err := r.chain(ctx, t, sub, c); err != nil {
					return err
				}
			}
			r.report.Cells = append(r.report.Cells, t.done())
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// chain compacts one conversation, part by part.
func (r *runner) chain(ctx context.Context, t *tally, sub *subject, c *Contender) error {
	var previous *string
	said := 0
	list := Split(sub.messages, t.cell.Chain)
	for i, part := range list {
		r.progress.Set, r.progress.Contender, r.progress.Subject = t.cell.Set, c.Name, sub.id
		r.cfg.Progress(r.progress)
		said += len(Flatten(part))
		base := sub.bytes
		if t.cell.Growth == OfSaid {
			base = said
		}
		budget := int(t.cell.Budget.of(sub.tokens) * float64(base))
		text, err := r.compact(ctx, t, c, r.request(sub, said, part, previous), budget)
		if err != nil {
			return err
		}
		if i == 0 && len(list) > 1 {
			t.first(sub, text, said)
		}
		previous = &text
		r.progress.Done++
	}
	t.last(sub, *previous)
	return nil
}

// request asks for one compaction.
func (r *runner) request(sub *subject, said int, part []abi.Message, previous *string) *abi.SummarizeRequest {
	req := &abi.SummarizeRequest{ThreadID: sub.id, Messages: part, PreviousSummary: previous}
	end := 0
	for size := 0; end < len(sub.messages) && size < said; end++ {
		size += len(flat(&sub.messages[end])) + 1
	}
	req.ReadFiles, req.ModifiedFiles = compaction.FileOperations(sub.messages[:end])
	return req
}

// compact asks a contender once. When it fails the text before stays.
func (r *runner) compact(ctx context.Context, t *tally, c *Contender, req *abi.SummarizeRequest, budget int) (string, error) {
	req.BudgetTokens = max(1, int64(math.Floor(float64(budget)/c.perToken())))
	start := r.cfg.Now()
	s, err := c.Summarizer.Summarize(ctx, req)
	t.took(r.cfg.Now().Sub(start))
	if ctx.Err() != nil {
		return "", ctx.Err()
	}
	if err == nil && s.Declined != "" {
		err = errors.New("declined: " + s.Declined)
	}
	if err != nil {
		t.failed(err)
		if req.PreviousSummary != nil {
			return head(*req.PreviousSummary, budget), nil
		}
		return "", nil
	}
	for _, f := range check(s, req, budget) {
		t.cell.Structure.Failed[f]++
		if f == CheckBudget {
			t.cell.Overruns++
		}
	}
	return head(s.Text, budget), nil
}
