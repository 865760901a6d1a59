package mcpproxy

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/hook"
)

// MaxMessage is how large a message may be, in bytes.
const MaxMessage = 64 << 20

// Config makes a [Proxy].
type Config struct {
	Engine *hook.Engine
	// Server names the server to plugins: its tools are mcp__SERVER__TOOL. Session is that of the engine.
	Server, Session, Cwd string
	// Pins keeps the digests of tools, nil keeps none.
	Pins   *Pins
	Logger *slog.Logger
}

// Proxy is one connection of a client to a server.
type Proxy struct {
	cfg Config

	mu sync.Mutex
	// held are calls that plugins look at, passed those that the server has, lists requests for tools, by raw id.
	held   map[string]*held
	passed map[string]*call
	lists  map[string]bool

	toServer, toClient *writer
	calls              sync.WaitGroup
}

// held is a call before the server has it.
type held struct{ cancelled bool }

// call is a call that the server has.
type call struct {
	tool  string
	input any
}

// writer writes one message at a time.
type writer struct {
	mu sync.Mutex
	w  io.Writer
}

func (w *writer) line(data []byte) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err := w.w.Write(data)
	return err
}

// New makes a proxy.
func New(cfg Config) (*Proxy, error) {
	if cfg.Engine == nil {
		return nil, errors.New("mcpproxy: Config.Engine is nil")
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	return &Proxy{cfg: cfg, held: map[string]*held{}, passed: map[string]*call{}, lists: map[string]bool{}}, nil
}

// Run copies until a side ends. The caller closes the streams of the other one then.
func (p *Proxy) Run(ctx context.Context, client io.Reader, toClient io.Writer, server io.Reader, toServer io.WriteCloser) error {
	p.toServer, p.toClient = &writer{w: toServer}, &writer{w: toClient}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var fromClient error
	p.calls.Go(func() {
		fromClient = p.copy(ctx, client, p.request)
		_ = toServer.Close() // the server ends when its input does
	})
	err := p.copy(ctx, server, p.response)
	cancel()
	if err != nil {
		return fmt.Errorf("mcpproxy: the server's output: %w", err)
	}
	done := make(chan struct{})
	go func() { p.calls.Wait(); close(done) }()
	select {
	case <-done:
		return fromClient
	default:
		return nil // the server has ended; the client's input may be open for ever
	}
}

// copy reads lines and hands them on.
func (p *Proxy) copy(ctx context.Context, from io.Reader, handle func(context.Context, []byte) error) error {
	lines := bufio.NewReaderSize(from, 64<<10)
	for {
		line, err := readLine(lines)
		if len(line) > 0 {
			if failed := handle(ctx, line); failed != nil {
				return failed
			}
		}
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// readLine reads a line with its end.
func readLine(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		if len(line)+len(part) > MaxMessage {
			return nil, fmt.Errorf("a message has more than %d bytes", MaxMessage)
		}
		line = append(line, part...)
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// request passes a message of the client on, or has plugins look at it first.
func (p *Proxy) request(ctx context.Context, line []byte) error {
	if t := bytes.TrimLeft(line, " \t\r\n"); len(t) > 0 && t[0] == '[' {
		return p.batch(ctx, line)
	}
	m, err := read(line)
	if err != nil {
		p.cfg.Logger.WarnContext(ctx, "a message was dropped", "error", err)
		return nil
	}
	switch m.method {
	case "tools/call":
		if m.id == "" {
			return nil // a call without an id has no answer, and would be one without a gate
		}
		if !p.wants("call") && p.cfg.Pins == nil {
			p.passes(m)
			return p.toServer.line(line)
		}
		h := &held{}
		p.mu.Lock()
		p.held[m.id] = h
		p.mu.Unlock()
		p.calls.Go(func() { p.gate(ctx, m, h) })
		return nil
	case "tools/list":
		p.mu.Lock()
		p.lists[m.id] = true
		p.mu.Unlock()
	case "initialize":
		p.ask(ctx, "initialize", map[string]any{}) //nolint:errcheck // plugins may exclude tools, and no more
	case "notifications/cancelled":
		if p.cancelled(m) {
			return nil
		}
	}
	return p.toServer.line(line)
}

// batch takes a list of messages apart if there is a call in it; else it passes.
func (p *Proxy) batch(ctx context.Context, line []byte) error {
	var all []json.RawMessage
	if json.Unmarshal(line, &all) != nil {
		return p.toServer.line(line)
	}
	if !slices.ContainsFunc(all, func(raw json.RawMessage) bool { m, err := read(raw); return err != nil || m.method == "tools/call" }) {
		return p.toServer.line(line)
	}
	for _, raw := range all {
		var b bytes.Buffer
		if err := json.Compact(&b, raw); err != nil {
			return err
		}
		b.WriteByte('\n')
		if err := p.request(ctx, b.Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// cancelled reports whether a cancellation is of a call that the server does not have yet.
func (p *Proxy) cancelled(m *message) bool {
	at, ok := m.inner("params", "requestId")
	if !ok {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[string(at.of(m.data))]
	if h == nil {
		return false
	}
	h.cancelled = true
	return true
}

// ask asks the plugins about an event. The answer is in the forms of the dialect mcp.
func (p *Proxy) ask(ctx context.Context, event string, fields map[string]any) (map[string]any, error) {
	fields["session"], fields["cwd"] = p.cfg.Session, p.cfg.Cwd
	stdin, err := compact(fields)
	if err != nil {
		return nil, err
	}
	out, err := p.cfg.Engine.Handle(ctx, &hook.Request{Dialect: "mcp", Event: event, Headless: true, Stdin: stdin})
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	dec := json.NewDecoder(strings.NewReader(out))
	dec.UseNumber()
	err = dec.Decode(&answer)
	return answer, err
}

// passes remembers a call that no plugin wants to look at before its result.
func (p *Proxy) passes(m *message) {
	if !p.wants("result") {
		return
	}
	c := &call{input: map[string]any{}}
	if at, ok := m.inner("params", "name"); ok {
		_ = json.Unmarshal(at.of(m.data), &c.tool)
	}
	p.mu.Lock()
	p.passed[m.id] = c
	p.mu.Unlock()
}

// wants reports whether a plugin has a part in an event. Plugins that exclude tools have one in calls.
func (p *Proxy) wants(event string) bool {
	d, err := hook.DialectOf("mcp")
	program := p.cfg.Engine.Program()
	return err != nil || program.Wants(d.Events[event]) || event == "call" && program.Wants(d.Events["initialize"])
}

// closed reports whether an event needs an answer.
func (p *Proxy) closed(event string) bool {
	d, err := hook.DialectOf("mcp")
	return err != nil || p.cfg.Engine.Program().Closed(d.Events[event])
}
