package future

import (
	"math/rand/v2"
	"slices"
)

// Share is a part of a whole, with the interval in which it lies with 95 %
// probability, which fewer windows than eight do not tell.
type Share struct {
	Value    float64   `json:"value"`
	Interval *Interval `json:"interval,omitempty"`
}

// Interval is from one value to another one.
type Interval struct {
	Low  float64 `json:"low"`
	High float64 `json:"high"`
}

// part of a whole in one window.
type count struct{ part, whole float64 }

const (
	resamples    = 2000
	leastWindows = 8
)

// shareOf pools the windows, and draws them again for the interval.
func shareOf(counts []count) Share {
	s := Share{Value: pooled(counts, nil)}
	if len(counts) < leastWindows {
		return s
	}
	//nolint:gosec // the interval of a report must be the same each time
	random := rand.New(rand.NewPCG(1, 2))
	values := make([]float64, resamples)
	drawn := make([]int, len(counts))
	for i := range values {
		for j := range drawn {
			drawn[j] = random.IntN(len(counts))
		}
		values[i] = pooled(counts, drawn)
	}
	slices.Sort(values)
	s.Interval = &Interval{Low: values[resamples*25/1000], High: values[resamples*975/1000-1]}
	return s
}

// pooled is the share over the drawn windows, over all without a draw.
func pooled(counts []count, drawn []int) float64 {
	var sum count
	add := func(c count) {
		sum.part += c.part
		sum.whole += c.whole
	}
	if drawn == nil {
		for _, c := range counts {
			add(c)
		}
	}
	for _, i := range drawn {
		add(counts[i])
	}
	if sum.whole == 0 {
		return 0
	}
	return sum.part / sum.whole
}
