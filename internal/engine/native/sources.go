package native

import (
	"crypto/rand"
	mathrand "math/rand/v2"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/sys"

	"github.com/mortise-dev/mortise/internal/engine"
)

// fixedSources are the clock and the random bytes of a guest that was granted
// neither: the same in every call.
type fixedSources struct {
	ticks  int64
	random *mathrand.ChaCha8
	// drawn reports that random is not at its start.
	drawn bool
}

// Read implements io.Reader with the fixed sequence.
func (s *fixedSources) Read(b []byte) (int, error) {
	s.drawn = true
	return s.random.Read(b)
}

// fixedTime is where the fixed clock starts: 2022-01-01, as wazero's does.
const fixedTime = 1640995200

// tick is what each look at the fixed clock adds, in nanoseconds.
const tick = 1_000_000

func (s *fixedSources) reset() {
	s.ticks = 0
	if s.drawn {
		s.random.Seed([32]byte{})
		s.drawn = false
	}
}

// config gives the guest what it was granted, and fixed sources for the rest.
func (s *fixedSources) config(c wazero.ModuleConfig, clock, random bool, i *nativeInstance) wazero.ModuleConfig {
	if clock {
		c = c.WithSysWalltime().WithSysNanotime()
	} else {
		c = c.WithWalltime(s.walltime, sys.ClockResolution(tick)).WithNanotime(s.nanotime, sys.ClockResolution(tick))
	}
	if random {
		return c.WithRandSource(engine.MeteredReader{Payer: i, R: rand.Reader})
	}
	s.random = mathrand.NewChaCha8([32]byte{})
	return c.WithRandSource(engine.MeteredReader{Payer: i, R: s})
}

func (s *fixedSources) walltime() (sec int64, nsec int32) {
	t := s.nanotime()
	return fixedTime + t/1e9, int32(t % 1e9) // below 1e9
}

func (s *fixedSources) nanotime() int64 {
	s.ticks += tick
	return s.ticks
}
