package daemon

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/internal/wire"
)

// keepStates is how long the state of a session is kept after its last event.
const keepStates = 30 * 24 * time.Hour

// states keeps each lane in a file of its own. A process that is killed leaves the old file or the new one.
type states struct {
	dir   string
	swept sync.Once
}

func (s *states) file(lane string) string {
	sum := sha256.Sum256([]byte(lane))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:16])+".state")
}

// Load implements [hook.States].
func (s *states) Load(lane string) (*hook.Saved, error) {
	data, err := os.ReadFile(s.file(lane))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err != nil {
		return nil, fmt.Errorf("daemon: %w", err)
	}
	out := &hook.Saved{}
	if err := wire.MessagePack.Unmarshal(data, out); err != nil {
		// The session starts anew: an agent that is denied everything from now on helps its user less.
		_ = os.Rename(s.file(lane), s.file(lane)+".damaged")
		return nil, nil //nolint:nilnil,nilerr // there is none
	}
	return out, nil
}

// Save implements [hook.States].
func (s *states) Save(lane string, v *hook.Saved) error {
	data, err := wire.MessagePack.Marshal(v)
	if err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	s.swept.Do(s.sweep)
	return hook.WriteFile(s.file(lane), data)
}

// sweep deletes states that were not used for long.
func (s *states) sweep() {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if info, err := e.Info(); err == nil && time.Since(info.ModTime()) > keepStates {
			_ = os.Remove(filepath.Join(s.dir, e.Name()))
		}
	}
}
