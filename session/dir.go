package session

import (
	"crypto/sha256"
	"encoding/base32"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/abi"
)

// Dir is a [Store] in a folder. Open it with [Open]; whoever did closes it.
type Dir struct {
	root *os.Root

	mu sync.Mutex
}

// Create makes the folder if it is missing, for its user alone, and opens it.
func Create(folder string) (*Dir, error) {
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return Open(folder)
}

// Open opens a folder that is there.
func Open(folder string) (*Dir, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	return &Dir{root: root}, nil
}

// Close implements [Store].
func (d *Dir) Close() error { return d.root.Close() }

// header is the first line of a log.
type header struct {
	Schema string `json:"schema"`
	Thread string `json:"thread"`
}

const (
	schema     = "mortise.session.v1"
	logName    = "log.jsonl"
	eventsName = "events.jsonl"
)

// maxSlug bounds how much of a thread's id its folder shows.
const maxSlug = 40

// folder is the name of a thread's folder: what can be read of its id, and what tells
// it from others.
func folder(thread string) string {
	slug := strings.Map(func(c rune) rune {
		switch {
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9', c == '-', c == '_':
			return c
		case c >= 'A' && c <= 'Z':
			return c - 'A' + 'a'
		}
		return '-'
	}, thread[:min(len(thread), maxSlug)])
	sum := sha256.Sum256([]byte(thread))
	return slug + "." + strings.ToLower(base32.StdEncoding.EncodeToString(sum[:10]))
}

// Threads implements [Store].
func (d *Dir) Threads() ([]string, error) {
	entries, err := fs.ReadDir(d.root.FS(), ".")
	if err != nil {
		return nil, fmt.Errorf("session: %w", err)
	}
	var out []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		thread, err := d.threadOf(e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // not a thread's
		}
		if err != nil {
			return nil, fmt.Errorf("session: %w", err)
		}
		out = append(out, thread)
	}
	slices.Sort(out)
	return out, nil
}

func (d *Dir) threadOf(name string) (thread string, err error) {
	file := path.Join(name, logName)
	found := false
	err = d.lines(file, func(n int, line []byte) error {
		var h header
		if err := decode(line, &h); err != nil {
			return fmt.Errorf("%s: line %d: %w", file, n, err)
		}
		if h.Schema != schema || folder(h.Thread) != name {
			return fmt.Errorf("%s: line %d: is not the head of a log of this folder", file, n)
		}
		thread, found = h.Thread, true
		return errStop
	})
	if err == nil && !found {
		return "", fs.ErrNotExist
	}
	return thread, err
}

// Append implements [Store].
func (d *Dir) Append(thread string, messages ...abi.Message) error {
	return d.log(thread, messages, func(m *abi.Message) Line { return Line{Message: m} })
}

// Replace implements [Store]. Those that are replaced stay in the file.
func (d *Dir) Replace(thread string, messages ...abi.Message) error {
	if len(messages) == 0 {
		return nil
	}
	log, err := d.read(thread)
	if err == nil {
		err = CheckReplace(thread, messages, log.Has)
	}
	if err != nil {
		return err
	}
	return d.log(thread, messages, func(m *abi.Message) Line { return Line{Replace: m} })
}

func (d *Dir) log(thread string, messages []abi.Message, line func(*abi.Message) Line) error {
	if len(messages) == 0 {
		return nil
	}
	if err := Check(thread, messages); err != nil {
		return err
	}
	values := make([]any, 0, len(messages))
	for i := range messages {
		values = append(values, line(&messages[i]))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.write(path.Join(folder(thread), logName), header{Schema: schema, Thread: thread}, values...); err != nil {
		return fmt.Errorf("session: thread %.80q: %w", thread, err)
	}
	return nil
}

// Log implements [Store].
func (d *Dir) Log(thread string) ([]abi.Message, error) {
	log, err := d.read(thread)
	if err != nil {
		return nil, err
	}
	return log.Messages(), nil
}

func (d *Dir) read(thread string) (*Log, error) {
	name := path.Join(folder(thread), logName)
	out := &Log{}
	err := d.lines(name, func(n int, line []byte) error {
		if n == 1 {
			return nil // the head
		}
		if err := out.Add(line); err != nil {
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		return nil
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = ErrUnknown
	}
	if err != nil {
		return nil, fmt.Errorf("session: thread %.80q: %w", thread, err)
	}
	return out, nil
}
