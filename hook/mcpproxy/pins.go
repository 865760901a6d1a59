package mcpproxy

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"github.com/mortise-dev/mortise/hook"
)

// Pins remembers what the tools of a server were like: a server that changes the description of a tool after its user
// has approved it can make a model do something else. A nil Pins remembers nothing. Proxies of one server, also in several
// processes, share a file.
type Pins struct {
	path string
	// strict has calls of tools denied that changed.
	strict bool
	lock   func() (io.Closer, error)

	mu      sync.Mutex
	digests map[string]string
	changed map[string]bool
}

// OpenPins reads a file of digests, which need not be there. With strict, tools that changed are blocked until the file is deleted. The
// file is read again, and written, while lock is held; nil means that no other Pins has the file.
func OpenPins(path string, strict bool, lock func() (io.Closer, error)) (*Pins, error) {
	if lock == nil {
		lock = func() (io.Closer, error) { return io.NopCloser(nil), nil }
	}
	p := &Pins{path: path, strict: strict, lock: lock, digests: map[string]string{}, changed: map[string]bool{}}
	if err := p.read(); err != nil {
		return nil, err
	}
	return p, nil
}

// read reads the file. Where it was deleted, its user accepts the tools as they are.
func (p *Pins) read() error {
	data, err := os.ReadFile(p.path)
	if errors.Is(err, fs.ErrNotExist) {
		p.digests, p.changed = map[string]string{}, map[string]bool{}
		return nil
	}
	digests := map[string]string{}
	if err == nil {
		err = json.Unmarshal(data, &digests)
	}
	if err != nil {
		return fmt.Errorf("mcpproxy: %s: %w", p.path, err)
	}
	p.digests = digests
	return nil
}

// listing is a tool as a server describes it.
type listing struct {
	name string
	raw  []byte
}

// compare compares tools with what they were, and calls changed for each that is another one now, once. An error means that the file
// has not what is new; the tools are compared all the same.
func (p *Pins) compare(tools []listing, changed func(name, hint string)) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	lock, err := p.lock()
	if err == nil {
		defer lock.Close()
		err = p.read()
	}
	fresh := false
	for _, t := range tools {
		var b bytes.Buffer
		if json.Compact(&b, t.raw) != nil {
			continue
		}
		sum := sha256.Sum256(b.Bytes())
		digest := hex.EncodeToString(sum[:])
		switch before, known := p.digests[t.name]; {
		case before == digest:
		case known && p.strict:
			if !p.changed[t.name] {
				changed(t.name, "its calls are denied; delete "+p.path+" to accept it")
			}
			p.changed[t.name] = true
		default:
			if known {
				changed(t.name, "look at it before you use it")
			}
			p.digests[t.name], fresh = digest, true
		}
	}
	if err != nil || !fresh {
		return err
	}
	data, err := json.MarshalIndent(p.digests, "", "  ")
	if err != nil {
		return err
	}
	return hook.WriteFile(p.path, data)
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
