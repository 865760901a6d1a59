package eval

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Growth is how a budget changes along a chain.
type Growth string

// Growths.
const (
	// OfWhole: each compaction has the budget of the whole conversation.
	OfWhole Growth = "whole"
	// OfSaid: each compaction has the share of what was said up to it.
	OfSaid Growth = "said"
)

// Set is conversations and what they hold. A conversation that no probe names
// is not measured.
type Set struct {
	Name          string
	Conversations []Conversation
	Probes        []Probe
}

// Config selects what to measure.
type Config struct {
	Sets       []Set
	Contenders []Contender
	// Budgets are 10 % when there are none.
	Budgets []Budget
	// Chains are how many compactions follow each other; 1 when there are none.
	Chains []int
	// Growths are those of chains longer than 1; [OfWhole] when there are none.
	Growths []Growth
	// Progress is called before each compaction and at the end. May be nil.
	Progress func(Progress)
	// Now is the clock of the latencies; time.Now when nil.
	Now func() time.Time
}

// Progress is how far a run is.
type Progress struct {
	Done, All               int // compactions
	Set, Contender, Subject string
}

// Limits of a config.
const (
	maxChain        = 1000
	defaultPerToken = 3.6
	defaultShare    = 0.1
)

func (c Config) withDefaults() (Config, error) {
	if len(c.Budgets) == 0 {
		c.Budgets = []Budget{{Share: defaultShare}}
	}
	if len(c.Chains) == 0 {
		c.Chains = []int{1}
	}
	if len(c.Growths) == 0 {
		c.Growths = []Growth{OfWhole}
	}
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	return c, errors.Join(c.checkNumbers(), c.checkContenders(), c.checkSets())
}

func (c *Config) checkNumbers() error {
	for _, b := range c.Budgets {
		if !b.valid() {
			return fmt.Errorf("eval: Config.Budgets: %s must be a share above 0 %% and up to 100 %%, or a number of tokens", b)
		}
	}
	for _, k := range c.Chains {
		if k < 1 || k > maxChain {
			return fmt.Errorf("eval: Config.Chains: %d must be from 1 to %d", k, maxChain)
		}
	}
	for _, g := range c.Growths {
		if g != OfWhole && g != OfSaid {
			return fmt.Errorf("eval: Config.Growths: %q must be %q or %q", g, OfWhole, OfSaid)
		}
	}
	return nil
}

func (c *Config) checkContenders() error {
	if len(c.Contenders) == 0 {
		return errors.New("eval: Config.Contenders: there are none")
	}
	names := make(map[string]bool)
	for _, n := range c.Contenders {
		switch {
		case n.Name == "" || n.Summarizer == nil:
			return fmt.Errorf("eval: Config.Contenders: %q needs a name and a summarizer", n.Name)
		case names[n.Name]:
			return fmt.Errorf("eval: Config.Contenders: there are two %q", n.Name)
		case !(n.BytesPerToken >= 0):
			return fmt.Errorf("eval: Config.Contenders: %q: BytesPerToken is %v, must not be negative", n.Name, n.BytesPerToken)
		}
		names[n.Name] = true
	}
	return nil
}

func (c *Config) checkSets() error {
	if len(c.Sets) == 0 {
		return errors.New("eval: Config.Sets: there are none")
	}
	for _, s := range c.Sets {
		known := make(map[string]bool)
		for _, talk := range s.Conversations {
			if known[talk.ID] {
				return fmt.Errorf("eval: set %q: there are two conversations %q", s.Name, talk.ID)
			}
			known[talk.ID] = len(talk.Messages) > 0
		}
		if len(s.Probes) == 0 {
			return fmt.Errorf("eval: set %q: there are no probes", s.Name)
		}
		for _, p := range s.Probes {
			if err := p.validate(); err != nil {
				return fmt.Errorf("eval: set %q: probe %q: %w", s.Name, p.ID, err)
			}
			if !known[p.Conversation] {
				return fmt.Errorf("eval: set %q: probe %q: conversation %q is not there or empty", s.Name, p.ID, p.Conversation)
			}
		}
	}
	return nil
}

func (c *Contender) perToken() float64 { return cmp.Or(c.BytesPerToken, defaultPerToken) }
