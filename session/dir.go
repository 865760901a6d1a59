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

// ErrUnknown is a thread that the folder does not hold.
var ErrUnknown = errors.New("the folder holds no such thread")

// Dir is a folder of threads. Open it with [Open]; whoever did closes it.
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

// Close lets go of the folder. Closing again does nothing.
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

// Threads lists the threads that have a log, in order.
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
	err = d.lines(file, func(n int, line []byte) error {
		var h header
		if err := decode(line, &h); err != nil {
			return fmt.Errorf("%s: line %d: %w", file, n, err)
		}
		if h.Schema != schema || folder(h.Thread) != name {
			return fmt.Errorf("%s: line %d: is not the head of a log of this folder", file, n)
		}
		thread = h.Thread
		return errStop
	})
	if err == nil && thread == "" {
		return "", fs.ErrNotExist
	}
	return thread, err
}

// entry is a line of a log: a message that comes next, or one that stands in the
// place of the message with its id.
type entry struct {
	Message *abi.Message `json:"message,omitempty"`
	Replace *abi.Message `json:"replace,omitempty"`
}

// Append adds messages to a thread's log, which is made if it is missing. Messages
// have ids.
func (d *Dir) Append(thread string, messages ...abi.Message) error {
	return d.log(thread, messages, func(m *abi.Message) entry { return entry{Message: m} })
}

// Replace puts messages in the place of those with their ids. Those that they replace
// stay in the file.
func (d *Dir) Replace(thread string, messages ...abi.Message) error {
	return d.log(thread, messages, func(m *abi.Message) entry { return entry{Replace: m} })
}

func (d *Dir) log(thread string, messages []abi.Message, line func(*abi.Message) entry) error {
	if len(messages) == 0 {
		return nil
	}
	values := make([]any, 0, len(messages))
	for i := range messages {
		if messages[i].ID == "" {
			return fmt.Errorf("session: thread %.80q: message %d has no id", thread, i)
		}
		values = append(values, line(&messages[i]))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.write(path.Join(folder(thread), logName), header{Schema: schema, Thread: thread}, values...); err != nil {
		return fmt.Errorf("session: thread %.80q: %w", thread, err)
	}
	return nil
}

// Log reads a thread's messages. It fails with [ErrUnknown] when there is no log.
func (d *Dir) Log(thread string) ([]abi.Message, error) {
	name := path.Join(folder(thread), logName)
	var out []abi.Message
	place := make(map[string]int)
	err := d.lines(name, func(n int, line []byte) error {
		if n == 1 {
			return nil
		}
		var e entry
		if err := decode(line, &e); err != nil {
			return fmt.Errorf("%s: line %d: %w", name, n, err)
		}
		switch {
		case e.Message != nil:
			place[e.Message.ID] = len(out)
			out = append(out, *e.Message)
		case e.Replace != nil:
			i, ok := place[e.Replace.ID]
			if !ok {
				return fmt.Errorf("%s: line %d: replaces %.80q, which does not come before", name, n, e.Replace.ID)
			}
			out[i] = *e.Replace
		default:
			return fmt.Errorf("%s: line %d: holds no message", name, n)
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
