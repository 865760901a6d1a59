package mcpproxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/mortise-dev/mortise/hook"
)

// Pins remembers what the tools of a server were like: a server that changes the description of a tool after its user
// has approved it can make a model do something else. A nil Pins remembers nothing.
type Pins struct {
	path string
	// strict has calls of tools denied that changed.
	strict bool

	mu      sync.Mutex
	digests map[string]string
	changed map[string]bool
}

// OpenPins reads a file of digests, which need not be there. With strict, tools that changed are blocked until the file is deleted.
func OpenPins(path string, strict bool) (*Pins, error) {
	p := &Pins{path: path, strict: strict, digests: map[string]string{}, changed: map[string]bool{}}
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &p.digests)
	}
	if err != nil {
		return nil, fmt.Errorf("mcpproxy: %s: %w", path, err)
	}
	return p, nil
}

// seen compares a tool with what it was, and returns a hint if it is another one now, once.
func (p *Pins) seen(name string, raw []byte) string {
	if p == nil {
		return ""
	}
	var b bytes.Buffer
	if json.Compact(&b, raw) != nil {
		return ""
	}
	sum := sha256.Sum256(b.Bytes())
	digest := hex.EncodeToString(sum[:])
	p.mu.Lock()
	defer p.mu.Unlock()
	before, known := p.digests[name]
	switch {
	case before == digest:
		return ""
	case !known:
		p.keep(name, digest)
		return ""
	case p.strict:
		if p.changed[name] {
			return ""
		}
		p.changed[name] = true
		return "its calls are denied; delete " + p.path + " to accept it"
	default:
		p.keep(name, digest)
		return "look at it before you use it"
	}
}

// keep writes a digest. P.mu is held.
func (p *Pins) keep(name, digest string) {
	p.digests[name] = digest
	if data, err := json.MarshalIndent(p.digests, "", "  "); err == nil {
		_ = hook.WriteFile(p.path, data)
	}
}

// denies reports whether calls of a tool may be denied.
func (p *Pins) denies() bool { return p != nil && p.strict }

// blocked is why calls of a tool are denied.
func (p *Pins) blocked(name string) string {
	if p == nil {
		return ""
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed[name] {
		return "mortise: the server changed the tool " + name + " since it was pinned, so its calls are denied; the user can accept it by deleting " + p.path
	}
	return ""
}
