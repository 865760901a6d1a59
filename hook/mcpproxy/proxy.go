package mcpproxy

import (
	"bufio"
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
	"github.com/mortise-dev/mortise/proxy/wire"
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
	cfg     Config
	dialect *hook.Dialect

	mu sync.Mutex
	// held are calls that plugins look at, asked the requests that the server has and has not answered, by id; tasks are calls whose
	// result comes later, the oldest first.
	held  map[string]*held
	asked map[string]asked
	tasks []task

	toServer, toClient *writer
	// gates are calls on their way to the server, results answers on their way to the client.
	gates, results turns
}

// turns executes functions one after the other, in the order in which they were added.
type turns struct {
	all  sync.WaitGroup
	last chan struct{}
}

// add does not wait. Only one goroutine may add.
func (t *turns) add(fn func()) {
	before, done := t.last, make(chan struct{})
	t.last = done
	t.all.Go(func() {
		if before != nil {
			<-before
		}
		defer close(done)
		fn()
	})
}

// held is a call before the server has it.
type held struct{ cancelled bool }

// task is a call that the server executes as a task.
type task struct {
	id   string
	call *call
}

// asked is a request that the server has: a call, one for a page of tools, or another one.
type asked struct {
	call *call
	list bool
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
	d, err := hook.DialectOf("mcp")
	if err != nil {
		return nil, err
	}
	return &Proxy{cfg: cfg, dialect: d, held: map[string]*held{}, asked: map[string]asked{}}, nil
}

// Run copies until a side ends. The caller closes the streams of the other one then.
func (p *Proxy) Run(ctx context.Context, client io.Reader, toClient io.Writer, server io.Reader, toServer io.WriteCloser) error {
	p.toServer, p.toClient = &writer{w: toServer}, &writer{w: toClient}
	if plugin := p.cfg.Engine.Program().Blind(); plugin != "" {
		p.cfg.Logger.WarnContext(ctx, "images, PDFs and other binary content of results reach the model unseen: plugins read texts alone", "plugin", plugin)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	requests := make(chan error, 1)
	go func() {
		err := p.copy(ctx, client, p.request)
		p.gates.all.Wait()
		_ = toServer.Close() // the server ends when its input does
		requests <- err
	}()
	err := p.copy(ctx, server, p.response)
	p.results.all.Wait() // what the server answered before it ended
	if err != nil {
		return fmt.Errorf("mcpproxy: the server's output: %w", err)
	}
	select {
	case err := <-requests:
		return err
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
	if (p.wants("call") || p.cfg.Pins.denies()) && odd(line) {
		p.cfg.Logger.WarnContext(ctx, "a line of the client that is no message was dropped")
		return nil
	}
	if all, ok := batchOf(line); ok {
		return p.batch(ctx, line, all, p.toServer, p.request, func(m *message) bool {
			p.asks(m, asked{}) // if the list passes as it is
			return seen[m.method] != nil
		})
	}
	m, err := read(line)
	if err != nil {
		p.cfg.Logger.WarnContext(ctx, "a message was dropped", "error", err)
		return nil
	}
	a := asked{}
	switch m.method {
	case methodTool, methodResource, methodPrompt:
		if m.id == "" {
			return nil // a call without an id has no answer, and would be one without a gate
		}
		c := p.callOf(m)
		if !p.wants("call") && p.pinned(m) == "" {
			a.call = c
			break
		}
		h := &held{}
		p.mu.Lock()
		p.held[m.key] = h
		p.mu.Unlock()
		p.gates.add(func() { p.gate(ctx, m, c, h) })
		return nil
	case "tools/list":
		a.list = true
	case "tasks/result":
		a.call = p.task(m.text("params", "taskId"))
	case "initialize":
		p.ask(ctx, "initialize", map[string]any{}) //nolint:errcheck // plugins may exclude tools, and no more
	case "notifications/cancelled":
		if p.cancelled(m) {
			return nil
		}
	}
	p.asks(m, a)
	return p.toServer.line(line)
}

// batch takes a list of messages apart if there is one in it in which plugins have a part; else it passes.
func (p *Proxy) batch(ctx context.Context, line []byte, all [][]byte, to *writer, each func(context.Context, []byte) error, part func(*message) bool) error {
	if !slices.ContainsFunc(all, func(one []byte) bool { m, err := read(one); return err != nil || part(m) }) {
		return to.line(line)
	}
	for _, one := range all {
		if err := each(ctx, one); err != nil {
			return err
		}
	}
	return nil
}

// asks remembers a request that the server gets.
func (p *Proxy) asks(m *message, a asked) {
	if m.id == "" || m.method == "" {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[m.key] = a
}

// task is the call that the server executes as a task, an empty one where that is not known.
func (p *Proxy) task(id string) *call {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, t := range slices.Backward(p.tasks) {
		if t.id == id {
			return t.call
		}
	}
	return &call{method: methodTool, tool: p.name("")}
}

// cancelled reports whether a cancellation is of a call that the server does not have yet.
func (p *Proxy) cancelled(m *message) bool {
	at, ok := m.inner("params", "requestId")
	if !ok {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	h := p.held[keyOf(at.of(m.data))]
	if h == nil {
		return false
	}
	h.cancelled = true
	return true
}

// ask asks the plugins about an event. The answer is in the forms of the dialect mcp.
func (p *Proxy) ask(ctx context.Context, event string, fields map[string]any) (map[string]any, error) {
	fields["session"], fields["cwd"] = p.cfg.Session, p.cfg.Cwd
	out, err := p.cfg.Engine.Handle(ctx, &hook.Request{Dialect: "mcp", Event: event, Headless: true, Stdin: wire.Marshal(fields)})
	if err != nil {
		return nil, err
	}
	var answer map[string]any
	dec := json.NewDecoder(strings.NewReader(out))
	dec.UseNumber()
	err = dec.Decode(&answer)
	return answer, err
}

// wants reports whether a plugin has a part in an event. Plugins that exclude tools have one in calls.
func (p *Proxy) wants(event string) bool {
	program := p.cfg.Engine.Program()
	return program.Wants(p.dialect.Events[event]) || event == "call" && program.Wants(p.dialect.Events["initialize"])
}

// closed reports whether an event needs an answer.
func (p *Proxy) closed(event string) bool {
	return p.cfg.Engine.Program().Closed(p.dialect.Events[event])
}
