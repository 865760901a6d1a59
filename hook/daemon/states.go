package daemon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/frame"
	"github.com/mortise-dev/mortise/internal/wire"
)

// keepStates is how long the state of a session is kept after its last event.
const keepStates = 30 * 24 * time.Hour

// states keeps each lane in a file of its own, which has a frame for each state: the last complete one counts. Replacing the
// file instead would take as long as the rest of an event, for ext4 writes a file to the disk when it replaces another one.
// A process that is killed leaves the old state or the new one.
type states struct {
	dir   string
	swept sync.Once
}

// maxStates is the size in bytes from which on a file is replaced by its last frame, unless that is more than a fourth of it.
const maxStates = 64 << 10

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
	last, torn := lastFrame(data)
	out := &hook.Saved{}
	if err := wire.MessagePack.Unmarshal(last, out); err != nil {
		// The session starts anew: an agent that is denied everything from now on helps its user less.
		_ = os.Rename(s.file(lane), s.file(lane)+".damaged")
		return nil, nil //nolint:nilnil,nilerr // there is none
	}
	if torn { // no frame may follow
		return out, s.replace(lane, last)
	}
	return out, nil
}

// lastFrame returns the last complete frame, and whether something follows it that is none.
func lastFrame(data []byte) (last []byte, torn bool) {
	for r := bytes.NewReader(data); r.Len() > 0; {
		next, err := frame.Read(r, len(data))
		if err != nil {
			return last, true
		}
		last = next
	}
	return last, false
}

// Save implements [hook.States].
func (s *states) Save(lane string, v *hook.Saved) error {
	data, err := wire.MessagePack.Marshal(v)
	if err != nil {
		return fmt.Errorf("daemon: %w", err)
	}
	f, err := os.OpenFile(s.file(lane), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil { // the first one, or a folder that was deleted
		if err := os.MkdirAll(s.dir, 0o700); err != nil {
			return fmt.Errorf("daemon: %w", err)
		}
		s.swept.Do(s.sweep)
		return s.replace(lane, data)
	}
	size, err := f.Seek(0, io.SeekEnd)
	if err == nil && size <= max(maxStates, 4*int64(len(data))) {
		err = frame.Write(f, data)
		if err = errors.Join(err, f.Close()); err == nil {
			return nil
		}
		// A part of it may be there.
	} else {
		_ = f.Close()
	}
	return s.replace(lane, data)
}

// replace makes a file of one frame.
func (s *states) replace(lane string, data []byte) error {
	var b bytes.Buffer
	_ = frame.Write(&b, data)
	return hook.WriteFile(s.file(lane), b.Bytes())
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
