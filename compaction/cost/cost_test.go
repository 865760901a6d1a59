package cost_test

import (
	"math"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/cost"
)

// request is about a view that becomes another one of which the first tokens are not read anew.
func request(before, after int64) *abi.AdmitRequest {
	const summary, head = 2000, 1000
	return &abi.AdmitRequest{
		TokensBefore: &before, RangeTokens: max(1, before-after+summary), WindowTokens: 200_000, ThresholdTokens: 30_000, NowMS: 1e12,
		Cost: &abi.CompactionCost{SummaryTokens: summary, SavedTokens: before - after, RewriteTokens: after - head},
	}
}

func with(r *abi.AdmitRequest, change func(*abi.AdmitRequest)) *abi.AdmitRequest {
	change(r)
	return r
}

func TestDecide(t *testing.T) {
	t.Parallel()
	cache := func(c abi.CacheUse) func(*abi.AdmitRequest) {
		return func(r *abi.AdmitRequest) { r.Cache = &c }
	}
	for name, tc := range map[string]struct {
		r      *abi.AdmitRequest
		reason string
	}{
		"hardly anything, as seen":     {request(37_548, 35_980), cost.ReasonSavesTooLittle},
		"a twelfth, as seen":           {request(34_702, 31_683), cost.ReasonSavesTooLittle},
		"a tenth, as seen":             {request(26_769, 24_162), cost.ReasonSavesTooLittle},
		"two thirds, as seen":          {request(32_800, 11_400), abi.ReasonAllowed},
		"four fifths, as seen":         {request(59_600, 12_900), abi.ReasonAllowed},
		"just below the share":         {request(100_000, 85_100), cost.ReasonSavesTooLittle},
		"the share, but not the money": {request(100_000, 85_000), cost.ReasonSavesTooLittle},
		"the share, of a cold cache":   {with(request(100_000, 85_000), cache(abi.CacheUse{AtMS: 1e12 - 301_000})), abi.ReasonAllowed},
		"the share, of a warm cache":   {with(request(100_000, 85_000), cache(abi.CacheUse{AtMS: 1e12 - 300_000})), cost.ReasonSavesTooLittle},
		"gpt lives longer":             {with(request(100_000, 85_000), cache(abi.CacheUse{AtMS: 1e12 - 301_000, Model: "gpt-5"})), cost.ReasonSavesTooLittle},
		"the host knows cheap reads":   {with(request(32_800, 11_400), cache(abi.CacheUse{AtMS: 1e12, ReadPerMille: 25, WritePerMille: 1250})), cost.ReasonSavesTooLittle},
		"the host knows cheap writes":  {with(request(100_000, 85_000), cache(abi.CacheUse{AtMS: 1e12, ReadPerMille: 100, WritePerMille: 400})), abi.ReasonAllowed},
		"no cache by the host's price": {with(request(100_000, 85_000), cache(abi.CacheUse{AtMS: 1e12, ReadPerMille: 1000, WritePerMille: 1000})), abi.ReasonAllowed},
		"asked for":                    {with(request(37_548, 35_980), func(r *abi.AdmitRequest) { r.Requested = true }), abi.ReasonAllowed},
		"asked for, but nothing":       {with(request(37_548, 37_548), func(r *abi.AdmitRequest) { r.Requested = true }), cost.ReasonSavesTooLittle},
		"it would grow":                {request(37_548, 40_000), cost.ReasonSavesTooLittle},
		"the window is nearly full":    {request(170_000, 165_000), abi.ReasonAllowed},
		"full, and hardly anything":    {request(170_000, 169_000), cost.ReasonSavesTooLittle},
		"compacted just now":           {with(request(32_800, 11_400), func(r *abi.AdmitRequest) { r.Cost.AfterTokens = 30_000 }), cost.ReasonGrownTooLittle},
		"compacted a while ago":        {with(request(32_800, 11_400), func(r *abi.AdmitRequest) { r.Cost.AfterTokens = 29_800 }), abi.ReasonAllowed},
		"without an estimate":          {with(request(100_000, 1), func(r *abi.AdmitRequest) { r.Cost, r.RangeTokens = nil, 90_000 }), abi.ReasonAllowed},
		"little, without an estimate":  {with(request(100_000, 1), func(r *abi.AdmitRequest) { r.Cost, r.RangeTokens = nil, 9_000 }), cost.ReasonSavesTooLittle},
		"no range":                     {with(request(100_000, 1), func(r *abi.AdmitRequest) { r.RangeTokens = 0 }), abi.ReasonNoPreparation},
		"no size":                      {with(request(100_000, 1), func(r *abi.AdmitRequest) { r.TokensBefore = nil }), abi.ReasonNoPreparation},
		"absurd sizes":                 {with(request(math.MaxInt64, 1), func(r *abi.AdmitRequest) { r.Cost.RewriteTokens = math.MaxInt64 }), abi.ReasonAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d := cost.Decide(tc.r, cost.Terms{}.Of(tc.r, ""))
			if d.Reason != tc.reason || d.Allowed != (tc.reason == abi.ReasonAllowed) || d.Detail == "" {
				t.Errorf("got %+v, want %s", d, tc.reason)
			}
		})
	}
}

// TestMonotone: more steps never make a compaction less worth.
func TestMonotone(t *testing.T) {
	t.Parallel()
	for size := int64(1000); size < 100_000_000; size *= 3 {
		worth := false
		for steps := int64(1); steps <= 10_000; steps *= 2 {
			r := request(size, size/2)
			r.WindowTokens = 0
			now := cost.Decide(r, cost.Terms{Steps: steps, SummarizerIn: 1000, SummarizerOut: 5000}.Of(r, "")).Allowed
			if worth && !now {
				t.Errorf("size %d: worth it before, not with %d steps", size, steps)
			}
			worth = now
		}
		if !worth {
			t.Errorf("size %d: never worth it", size)
		}
	}
}

func TestOf(t *testing.T) {
	t.Parallel()
	for model, want := range map[string][3]int64{
		"claude-opus-5":         {100, 1250, 300_000},
		"anthropic/claude-x":    {100, 1250, 300_000},
		"gpt-5.2":               {100, 1000, 600_000},
		"openai/gpt-5.6-sol":    {100, 1250, 1_800_000},
		"gpt-6-luna":            {100, 1250, 1_800_000},
		"o3-mini":               {100, 1000, 600_000},
		"a-model-of-some-other": {100, 1250, 300_000},
	} {
		r := request(2, 1)
		r.Cache = &abi.CacheUse{Model: model}
		if got := (cost.Terms{}).Of(r, ""); got.Read != want[0] || got.Write != want[1] || got.LifeMS != want[2] {
			t.Errorf("%s: %+v, want %v", model, got, want)
		}
	}
	r := request(2, 1)
	r.Cache = &abi.CacheUse{Model: "gpt-5", ReadPerMille: 50, WritePerMille: 1100}
	if got := (cost.Terms{Write: 7}).Of(r, ""); got.Read != 50 || got.Write != 7 {
		t.Errorf("the host's price: %+v", got)
	}
	if got := (cost.Terms{}).Of(r, cost.FamilyAnthropicHour); got.Read != 100 || got.Write != 2000 || got.LifeMS != 3_600_000 {
		t.Errorf("a family that is named: %+v", got)
	}
}
