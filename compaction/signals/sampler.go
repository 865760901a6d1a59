package signals

import (
	"cmp"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// Config has the thresholds of too little and too slow. Zero fields take defaults.
type Config struct {
	// Headroom is how many bytes of memory must be left, 64 MiB.
	Headroom int64
	// MaxLatency is how long the slowest twentieth of calls may take, 2 min;
	// MaxErrorRate how many of a thousand may fail, 500.
	MaxLatency   time.Duration
	MaxErrorRate int64
	// Window is how long a call counts, 10 min. When all that is known is older, the
	// signal is stale.
	Window time.Duration
	// MinCalls is how many calls it takes to judge, 5. With fewer the provider's
	// signal is absent.
	MinCalls int
	// Every is how long a sample of the memory is used again, 1 s.
	Every time.Duration
	// Root is the file system with proc and sys, that of the machine when nil.
	Root fs.FS
	Now  func() time.Time
}

// Sampler samples. Make one with [New].
type Sampler struct {
	cfg Config

	mu     sync.Mutex
	calls  []call // a ring
	next   int
	memory *abi.MemorySignal
	at     time.Time
}

type call struct {
	at     time.Time
	took   time.Duration
	failed bool
}

// maxCalls is how many calls are remembered.
const maxCalls = 256

// New checks the config.
func New(cfg Config) (*Sampler, error) {
	for name, v := range map[string]int64{
		"Headroom": cfg.Headroom, "MaxLatency": int64(cfg.MaxLatency), "MaxErrorRate": cfg.MaxErrorRate,
		"Window": int64(cfg.Window), "MinCalls": int64(cfg.MinCalls), "Every": int64(cfg.Every),
	} {
		if v < 0 {
			return nil, fmt.Errorf("signals: Config.%s is %d, must not be negative", name, v)
		}
	}
	if cfg.MaxErrorRate > 1000 {
		return nil, fmt.Errorf("signals: Config.MaxErrorRate is %d, must be at most 1000", cfg.MaxErrorRate)
	}
	cfg.Headroom = cmp.Or(cfg.Headroom, 64<<20)
	cfg.MaxLatency = cmp.Or(cfg.MaxLatency, 2*time.Minute)
	cfg.MaxErrorRate = cmp.Or(cfg.MaxErrorRate, 500)
	cfg.Window = cmp.Or(cfg.Window, 10*time.Minute)
	cfg.MinCalls = cmp.Or(cfg.MinCalls, 5)
	cfg.Every = cmp.Or(cfg.Every, time.Second)
	if cfg.Root == nil {
		cfg.Root = os.DirFS("/")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Sampler{cfg: cfg}, nil
}

// Observe counts a call of the model's provider: how long it took, and whether it
// failed for a reason that lies with the provider.
func (s *Sampler) Observe(took time.Duration, failed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := call{at: s.cfg.Now(), took: took, failed: failed}
	if len(s.calls) < maxCalls {
		s.calls = append(s.calls, c)
		return
	}
	s.calls[s.next] = c
	s.next = (s.next + 1) % maxCalls
}

// Sample returns the current readings. The queue is not this package's to know.
func (s *Sampler) Sample() abi.Signals {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	if s.at.IsZero() || now.Sub(s.at) >= s.cfg.Every {
		s.memory, s.at = s.sampleMemory(), now
	}
	return abi.Signals{Memory: s.memory, Provider: s.provider(now)}
}

func (s *Sampler) sampleMemory() *abi.MemorySignal {
	available, ok := available(s.cfg.Root)
	if !ok {
		return nil
	}
	return &abi.MemorySignal{
		AvailableBytes: &available, RequiredHeadroomBytes: s.cfg.Headroom, Pressure: available < s.cfg.Headroom,
	}
}

// provider judges by the calls of the window.
func (s *Sampler) provider(now time.Time) *abi.ProviderSignal {
	var took []time.Duration
	failed := int64(0)
	for _, c := range s.calls {
		if now.Sub(c.at) > s.cfg.Window {
			continue
		}
		took = append(took, c.took)
		if c.failed {
			failed++
		}
	}
	limit, rate := s.cfg.MaxLatency.Milliseconds(), s.cfg.MaxErrorRate
	p := &abi.ProviderSignal{MaxP95LatencyMS: &limit, MaxErrorRatePerMille: &rate}
	switch {
	case len(s.calls) < s.cfg.MinCalls:
		return nil
	case len(took) == 0:
		p.Stale = true
		return p
	case len(took) < s.cfg.MinCalls:
		return nil
	}
	slices.Sort(took)
	p95 := took[(len(took)*95+99)/100-1].Milliseconds()
	errors := failed * 1000 / int64(len(took))
	p.P95LatencyMS, p.ErrorRatePerMille = &p95, &errors
	p.Degraded = p95 > limit || errors > rate
	return p
}
