package mailboxtest

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// share plays the schedules of some seeds on one store.
type share struct {
	// one and other are handles of one store.
	one, other store.Store

	mu sync.Mutex
	// next is the seed that is played next, end the first one that is not.
	next, end uint64
	// names counts the threads that were used.
	names int
	taken *takings
	// done are those of schedules that came out well. failure is the first one that did not, and seed its seed.
	done    []*player
	failed  []*player
	failure string
	seed    uint64
}

// takings counts for each action the steps that changed something.
type takings struct {
	mu     sync.Mutex
	of     map[action]int
	played int
}

func (k *takings) add(of map[action]int) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.played++
	for a, n := range of {
		k.of[a] += n
	}
}

// play plays all schedules, several at once unless the share is to be played alone and has two stores, and returns what is wrong.
func (s *share) play(ctx context.Context, alone bool) string {
	players := modelPlayers
	if alone {
		players = 1
	}
	var wg sync.WaitGroup
	for range players {
		wg.Go(func() {
			for seed, more := s.pull(); more; seed, more = s.pull() {
				p, trouble := s.playOne(ctx, schedule(seed))
				s.ended(p, seed, trouble)
			}
		})
	}
	wg.Wait()
	defer func() {
		for _, p := range s.done {
			p.close(ctx, modelStuck)
		}
		for _, p := range s.failed {
			p.close(ctx, time.Second)
		}
	}()
	if s.failure != "" {
		return fmt.Sprintf("%s=%d: %s", modelSeed, s.seed, s.explain(ctx))
	}
	a := audit{players: s.done}
	if err := a.run(ctx, s.one); err != nil {
		return err.Error()
	}
	return strings.Join(a.wrong, "\n")
}

// pull takes a seed, until there is none or a schedule went wrong.
func (s *share) pull() (seed uint64, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.next == s.end || s.failure != "" {
		return 0, false
	}
	s.next++
	return s.next - 1, true
}

// playOne plays a schedule on a thread of its own, and returns what went wrong first.
func (s *share) playOne(ctx context.Context, steps []step) (*player, string) {
	s.mu.Lock()
	s.names++
	name := s.names
	s.mu.Unlock()
	p, err := newPlayer(ctx, s.one, s.other, name)
	if err != nil {
		return nil, err.Error()
	}
	trouble := p.play(ctx, steps)
	return p, trouble
}

func (s *share) ended(p *player, seed uint64, trouble string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case trouble == "":
		s.taken.add(p.taken)
		s.done = append(s.done, p)
	case s.failure == "":
		s.failure, s.seed = trouble, seed
	}
	if trouble != "" && p != nil {
		s.failed = append(s.failed, p)
	}
}

// explain shortens the schedule that failed, when it fails alone, too.
func (s *share) explain(ctx context.Context) string {
	steps, beside := schedule(s.seed), ""
	begin := time.Now()
	try := func(steps []step) string {
		if time.Since(begin) > modelShorten {
			return ""
		}
		p, trouble := s.playOne(ctx, steps)
		if p != nil {
			p.close(ctx, time.Second)
		}
		return trouble
	}
	if trouble := try(steps); trouble != "" {
		steps, s.failure = shorten(steps, trouble, try)
	} else {
		beside = " (with others at once, and not alone)"
	}
	var out strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&out, "\t%+v\n", s)
	}
	return fmt.Sprintf("%s%s\nafter\n%s", s.failure, beside, out.String())
}
