package hook

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrNoTicket is a ticket that does not exist, or was decided already.
var ErrNoTicket = errors.New("there is no such ticket that waits")

// TicketStatus is what became of a suspended call.
type TicketStatus string

// Statuses of tickets. An approved one lets the identical call pass once, and is used then.
const (
	TicketOpen     TicketStatus = "open"
	TicketApproved TicketStatus = "approved"
	TicketRejected TicketStatus = "rejected"
	TicketUsed     TicketStatus = "used"
)

// Ticket is a suspended call.
type Ticket struct {
	ID      string       `json:"id"`
	Status  TicketStatus `json:"status"`
	Dialect string       `json:"dialect"`
	Session string       `json:"session"`
	Tool    string       `json:"tool"`
	Cwd     string       `json:"cwd,omitempty"`
	By      string       `json:"by"`
	Reason  string       `json:"reason,omitempty"`
	// Input is the call as the person who decides has to see it.
	Input any       `json:"input"`
	Note  string    `json:"note,omitempty"`
	At    time.Time `json:"at"`
	// Key is the same for identical calls of a session.
	Key string `json:"key"`
}

// Tickets keeps suspended calls in a folder of files that only their owner may read. It is safe for concurrent use,
// also by the process that decides.
type Tickets struct {
	dir string
	mu  sync.Mutex
}

// ticketsKept bounds the folder; decided tickets beyond it are forgotten first.
const ticketsKept = 200

// NewTickets keeps tickets in a folder.
func NewTickets(dir string) *Tickets { return &Tickets{dir: dir} }

// ask returns the ticket of a call: that of an earlier, identical one on which a person decided, which is used up by
// it, or an open one.
func (t *Tickets) ask(e *Event, by, reason string, now time.Time, log *slog.Logger) (*Ticket, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	input := e.exact("input")
	key, err := ticketKey(e, input)
	if err != nil {
		return nil, err
	}
	all, err := t.list(log)
	if err != nil {
		return nil, err
	}
	for _, k := range all {
		if k.Key != key || k.Status == TicketUsed {
			continue
		}
		if k.Status == TicketOpen {
			return k, nil
		}
		used := *k
		used.Status = TicketUsed
		return k, t.write(&used)
	}
	for i, k := range all {
		if len(all)-i > ticketsKept {
			_ = os.Remove(t.file(k.ID)) // the oldest
		}
	}
	k := &Ticket{
		ID: newTicketID(), Status: TicketOpen, Dialect: e.Dialect.Name, Session: e.Session, Tool: e.Tool, Cwd: e.Cwd, By: by,
		Reason: reason, Input: input, At: now.UTC(), Key: key,
	}
	return k, t.write(k)
}

// List returns the tickets, the oldest first.
func (t *Tickets) List() ([]*Ticket, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.list(slog.New(slog.DiscardHandler))
}

// Decide approves or rejects an open ticket.
func (t *Tickets) Decide(id string, approve bool, note string) (*Ticket, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !ticketID.MatchString(id) {
		return nil, fmt.Errorf("hook: ticket %.40q: %w", id, ErrNoTicket)
	}
	k, err := t.read(t.file(id))
	if errors.Is(err, fs.ErrNotExist) || err == nil && k.Status != TicketOpen {
		return nil, fmt.Errorf("hook: ticket %s: %w", id, ErrNoTicket)
	}
	if err != nil {
		return nil, err
	}
	if k.Note, k.Status = note, TicketRejected; approve {
		k.Status = TicketApproved
	}
	return k, t.write(k)
}

var ticketID = regexp.MustCompile(`^[0-9a-f]{8}$`)

func newTicketID() string {
	b := make([]byte, 4)
	_, _ = rand.Read(b) // it never fails
	return hex.EncodeToString(b)
}

func ticketKey(e *Event, input any) (string, error) {
	text, err := encodeJSON(input)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256([]byte(fmt.Sprintf("%s %q %q %s", laneKey(e), e.Tool, e.Cwd, text)))
	return hex.EncodeToString(sum[:]), nil
}

func (t *Tickets) file(id string) string { return filepath.Join(t.dir, id+".json") }

// Damaged returns the files of tickets that could not be read and were set aside. Their calls have to be suspended, and approved, again.
func (t *Tickets) Damaged() ([]string, error) {
	return filepath.Glob(filepath.Join(t.dir, "*"+damaged))
}

// damaged ends the names of files that were set aside.
const damaged = ".damaged"

// errDamaged is a file that holds no ticket.
var errDamaged = errors.New("the file is damaged")

// list reads the tickets. Those that are damaged are set aside: they grant nothing, and keep no other call from being suspended.
func (t *Tickets) list(log *slog.Logger) ([]*Ticket, error) {
	entries, err := os.ReadDir(t.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("hook: tickets: %w", err)
	}
	var out []*Ticket
	for _, entry := range entries {
		if !ticketID.MatchString(strings.TrimSuffix(entry.Name(), ".json")) {
			continue
		}
		path := filepath.Join(t.dir, entry.Name())
		k, err := t.read(path)
		if errors.Is(err, errDamaged) {
			log.Warn("hook_ticket_damaged", "file", path+damaged, "error", err)
			err = os.Rename(path, path+damaged)
		}
		switch {
		case errors.Is(err, fs.ErrNotExist): // another process removed it, or set it aside
		case err != nil:
			return nil, err
		case k != nil:
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b *Ticket) int { return a.At.Compare(b.At) })
	return out, nil
}

func (t *Tickets) read(path string) (*Ticket, error) {
	if info, err := os.Stat(path); err == nil && !info.Mode().IsRegular() {
		return nil, fmt.Errorf("hook: ticket %s: %w: it is no file", filepath.Base(path), errDamaged)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("hook: tickets: %w", err)
	}
	k := &Ticket{}
	if err := json.Unmarshal(data, k); err != nil {
		return nil, fmt.Errorf("hook: ticket %s: %w: %w", filepath.Base(path), errDamaged, err)
	}
	known := []TicketStatus{TicketOpen, TicketApproved, TicketRejected, TicketUsed}
	if t.file(k.ID) != path || k.Key == "" || !slices.Contains(known, k.Status) {
		return nil, fmt.Errorf("hook: ticket %s: %w", filepath.Base(path), errDamaged)
	}
	return k, nil
}

func (t *Tickets) write(k *Ticket) error {
	data, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("hook: ticket: %w", err)
	}
	if err := os.MkdirAll(t.dir, 0o700); err != nil {
		return fmt.Errorf("hook: tickets: %w", err)
	}
	return WriteFile(t.file(k.ID), data)
}

// WriteFile writes a file that only its owner may read: the old one, or the new one, is there at any time.
func WriteFile(path string, data []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".tmp-*") // 0600
	if err != nil {
		return fmt.Errorf("hook: write %s: %w", filepath.Base(path), err)
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("hook: write %s: %w", filepath.Base(path), err), os.Remove(f.Name()))
	}
	return nil
}
