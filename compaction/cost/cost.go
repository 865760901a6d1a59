package cost

import (
	"strconv"

	"github.com/mortise-dev/mortise/abi"
)

// Reasons of refusals.
const (
	ReasonSavesTooLittle = "saves_too_little"
	ReasonGrownTooLittle = "grown_too_little"
)

// Terms are what a decision depends on besides the request. Prices and shares are in thousandths. Zero fields
// take the defaults of [Terms.Of].
type Terms struct {
	// Read and Write are the prices of a token from the provider's cache and to it, as shares of the price of a
	// token of fresh input.
	Read, Write int64
	// LifeMS is how long the cache keeps a context after its last use, in milliseconds.
	LifeMS int64
	// SummarizerIn and SummarizerOut are the prices of the summarizer's model, as shares of the same price.
	// Zero means that it asks none.
	SummarizerIn, SummarizerOut int64
	// Steps is for how many requests the conversation is expected to continue.
	Steps int64
	// Margin is how much the saving must be of the cost.
	Margin int64
	// Gain is the least share of the view that must be saved, a tenth of it from Force on.
	Gain int64
	// Growth is by how much the view must have grown since the latest compaction, as a share of the threshold.
	Growth int64
	// Force is the share of the window from which the cost is not the question.
	Force int64
}

// Defaults.
const (
	DefaultSteps  = 20
	DefaultMargin = 1000
	DefaultGain   = 150
	DefaultGrowth = 100
	DefaultForce  = 850
)

// maxTokens bounds all sizes, so that no product overflows.
const maxTokens = 100_000_000

// Decide answers a request with complete terms, see [Terms.Of].
func Decide(r *abi.AdmitRequest, t Terms) abi.Decision {
	if r.TokensBefore == nil || r.RangeTokens <= 0 {
		return refuse(abi.ReasonNoPreparation, "There is nothing to compact yet.")
	}
	before := clamp(*r.TokensBefore)
	c := costOf(r, before)
	gain := c.SavedTokens * 1000 / max(before, 1)
	saves := "It saves about " + num(c.SavedTokens) + " of " + num(before) + " tokens"
	switch full := before * 1000 / max(clamp(r.WindowTokens), 1); {
	case c.SavedTokens == 0:
		return refuse(ReasonSavesTooLittle, saves+".")
	case r.Requested:
		return allow(saves + ", and was asked for.")
	case r.WindowTokens > 0 && full >= t.Force:
		if gain*10 < t.Gain {
			return refuse(ReasonSavesTooLittle, saves+", less than "+num(t.Gain/10)+" per mille, in a window that is full to "+num(full)+" per mille.")
		}
		return allow(saves + "; the window is full to " + num(full) + " per mille, past the force mark of " + num(t.Force) + ".")
	case c.AfterTokens > 0 && before-c.AfterTokens < clamp(r.ThresholdTokens)*t.Growth/1000:
		return refuse(ReasonGrownTooLittle, "The view has grown from "+num(c.AfterTokens)+" to "+num(before)+" tokens since the latest compaction, by less than "+num(t.Growth)+" per mille of the threshold.")
	case gain < t.Gain:
		return refuse(ReasonSavesTooLittle, saves+", less than "+num(t.Gain)+" per mille.")
	}
	saving, price := t.weigh(r, &c)
	in := ": " + num(saving/1000) + " in " + num(t.Steps) + " requests for " + num(price/1000) + " now, in tokens of fresh input."
	if saving*1000 < price*t.Margin {
		return refuse(ReasonSavesTooLittle, saves+in)
	}
	return allow(saves + in)
}

// weigh returns what a compaction saves and costs, in thousandths of a token of fresh input. The cost is
// negative where the context must be paid for anew anyway.
func (t *Terms) weigh(r *abi.AdmitRequest, c *abi.CompactionCost) (saving, price int64) {
	saving = t.Steps * t.Read * c.SavedTokens
	price = t.Write*c.RewriteTokens - t.Read*(c.SavedTokens+c.RewriteTokens)
	if cold(r, t.LifeMS) {
		price = -t.Write * c.SavedTokens
	}
	return saving, price + t.SummarizerIn*clamp(r.RangeTokens) + t.SummarizerOut*c.SummaryTokens
}

// cold reports whether the cache has certainly lost the context.
func cold(r *abi.AdmitRequest, life int64) bool {
	return r.Cache != nil && r.Cache.AtMS > 0 && r.NowMS-r.Cache.AtMS > life
}

// costOf is the host's estimate, or one of the sizes.
func costOf(r *abi.AdmitRequest, before int64) abi.CompactionCost {
	const summaryShare = 150
	c := abi.CompactionCost{}
	if r.Cost != nil {
		c = *r.Cost
	} else {
		covered := min(clamp(r.RangeTokens), before)
		c.SummaryTokens = covered * summaryShare / 1000
		c.SavedTokens, c.RewriteTokens = covered-c.SummaryTokens, before-covered+c.SummaryTokens
	}
	c.SummaryTokens, c.SavedTokens = clamp(c.SummaryTokens), min(clamp(c.SavedTokens), before)
	c.RewriteTokens, c.AfterTokens = clamp(c.RewriteTokens), clamp(c.AfterTokens)
	return c
}

func allow(detail string) abi.Decision {
	return abi.Decision{Allowed: true, Reason: abi.ReasonAllowed, Detail: detail}
}

func refuse(reason, detail string) abi.Decision { return abi.Decision{Reason: reason, Detail: detail} }

func clamp(n int64) int64 { return min(max(0, n), maxTokens) }

func num(n int64) string { return strconv.FormatInt(n, 10) }
