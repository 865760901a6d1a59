package llm

import (
	"cmp"
	"fmt"
	"sync"
	"time"
)

// BreakerConfig makes a [Breaker]. Zero fields mean the default.
type BreakerConfig struct {
	// Failures in a row after which a model is not asked, 5.
	Failures int
	// CoolDown is how long it is not asked, 30 s. Then one request may try.
	CoolDown time.Duration
	// Now is time.Now when nil.
	Now func() time.Time
}

// Breaker keeps requests away from models that fail. One may serve many clients;
// it is safe for concurrent use.
type Breaker struct {
	cfg BreakerConfig

	mu     sync.Mutex
	models map[string]*circuit
}

// circuit is what is known of one model.
type circuit struct {
	failures int
	until    time.Time
	probing  bool
}

// maxCircuits bounds how many names of models are remembered.
const maxCircuits = 1024

// NewBreaker checks the config and returns a breaker with all circuits closed.
func NewBreaker(cfg BreakerConfig) (*Breaker, error) {
	if cfg.Failures < 0 {
		return nil, fmt.Errorf("llm: BreakerConfig.Failures is %d, must not be negative", cfg.Failures)
	}
	if cfg.CoolDown < 0 {
		return nil, fmt.Errorf("llm: BreakerConfig.CoolDown is %v, must not be negative", cfg.CoolDown)
	}
	cfg.Failures = cmp.Or(cfg.Failures, 5)
	cfg.CoolDown = cmp.Or(cfg.CoolDown, 30*time.Second)
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Breaker{cfg: cfg, models: make(map[string]*circuit)}, nil
}

// Allow reports whether a model may be asked now. After the cool-down one caller may;
// it must pass the outcome to Report.
func (b *Breaker) Allow(model string) bool {
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.models[model]
	switch {
	case c == nil || c.failures < b.cfg.Failures:
		return true
	case c.probing || b.cfg.Now().Before(c.until):
		return false
	default:
		c.probing = true
		return true
	}
}

// Report records the outcome of a request that was allowed. An error that is not
// retryable says nothing about the model's health, and only ends the trial.
func (b *Breaker) Report(model string, err *Error) {
	if b == nil {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	c := b.models[model]
	switch {
	case err == nil:
		delete(b.models, model)
	case !err.Retryable():
		if c != nil {
			c.probing = false
		}
	case c == nil:
		if len(b.models) < maxCircuits {
			b.models[model] = &circuit{failures: 1, until: b.cfg.Now().Add(b.cfg.CoolDown)}
		}
	default:
		c.failures++
		c.probing = false
		c.until = b.cfg.Now().Add(b.cfg.CoolDown)
	}
}
