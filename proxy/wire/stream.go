package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Kind is what an event means for an answer.
type Kind int

// Kinds of events.
const (
	Other Kind = iota
	// Start begins the answer.
	Start
	// Open begins a block, Delta continues one, Close ends it.
	Open
	Delta
	Close
	// Stop has the stop reason and the usage, and End ends the stream.
	Stop
	End
	// Failure is an error that ends the stream.
	Failure
)

// Step is what an event did to an answer.
type Step struct {
	Kind  Kind
	Block *Out // of Open, Delta and Close
}

// MaxAnswer is how much of a streamed answer is kept, in bytes.
const MaxAnswer = 16 << 20

// blockSize is what a block counts for besides its contents.
const blockSize = 512

// Stream follows the events of an answer.
type Stream struct {
	Answer

	// Large means that more came than is kept: the answer has its usage and its end, and no content.
	Large bool
	size  int
	// open are blocks that have not ended, by index; args and text are their deltas.
	open map[int]*building
}

type building struct {
	out   Out
	start []byte // the block as it began
	args  []byte
	text  []byte
	sign  []byte
	cites [][]byte
	// whole are the arguments of a call where an event has all of them.
	whole []string
	lost  bool
}

// NewStream returns one for a protocol.
func NewStream(p Protocol) *Stream {
	return &Stream{Answer: Answer{Protocol: p}, open: map[int]*building{}}
}

// Event takes the next event.
func (s *Stream) Event(e Event) Step {
	if len(e.Data) == 0 {
		return Step{}
	}
	if end, err := value(e.Data, 0); err != nil || space(e.Data, end) < len(e.Data) {
		s.Unclear = "an event is no JSON"
	}
	take := s.chat
	switch s.Protocol {
	case Messages:
		take = s.messages
	case Responses:
		take = s.responses
	case Chat:
	}
	step := take(e)
	if s.size > MaxAnswer {
		s.Large, s.Blocks, s.Extra, s.Unclear = true, nil, nil, ""
		clear(s.open)
	}
	return step
}

// number returns an integer of a body.
func number(b []byte, at Span) int64 {
	if !at.Exists() {
		return 0
	}
	var n int64
	for _, c := range at.Of(b) {
		if c < '0' || c > '9' || n > 1<<52 {
			break
		}
		n = 10*n + int64(c-'0')
	}
	return n
}

// list visits the elements of a list, which may be missing.
func (s *Stream) list(b []byte, at Span, visit func(i int, val Span) error) {
	if Array(b, at, visit) != nil && at.Exists() && string(at.Of(b)) != "null" {
		s.Unclear = "a list is none"
	}
}

// index reads the index of a block, which must not be taken for another one than clients take it for.
func (s *Stream) index(b []byte, at Span) int {
	n, err := strconv.Atoi(string(at.Of(b)))
	if at.Exists() && (err != nil || n < 0) {
		s.Unclear = "an index is no number"
	}
	return n
}

func (s *Stream) messages(e Event) Step {
	b, w := e.Data, Whole(e.Data)
	kind := Text(b, "type")
	index := s.index(b, Field(b, w, "index"))
	switch kind {
	case "message_start":
		m := Field(b, w, "message")
		s.ID, s.Model = String(b, Field(b, m, "id")), String(b, Field(b, m, "model"))
		s.usage(b, Field(b, m, "usage"))
		return Step{Kind: Start}
	case "content_block_start":
		return s.begin(index, append([]byte(nil), Field(b, w, "content_block").Of(b)...))
	case "content_block_delta":
		return s.delta(index, b, Field(b, w, "delta"))
	case "content_block_stop":
		return s.finish(index)
	case "message_delta":
		if stop := String(b, Field(b, w, "delta", "stop_reason")); stop != "" {
			s.Stop = stop
		}
		s.usage(b, Field(b, w, "usage"))
		return Step{Kind: Stop}
	case "message_stop":
		s.Done = true
		return Step{Kind: End}
	case "error":
		s.Failed = true
		return Step{Kind: Failure}
	}
	return Step{}
}

// usage reads counts, of which those that are missing stay.
func (s *Stream) usage(b []byte, at Span) {
	if !at.Exists() || b[at.From] != '{' {
		return
	}
	s.Counted = true
	readUsage(s.Protocol, b, at, &s.Usage)
}

func readUsage(p Protocol, b []byte, at Span, u *Usage) {
	if p != Messages {
		in, details, out := "input_tokens", "input_tokens_details", "output_tokens"
		if p == Chat {
			in, details, out = "prompt_tokens", "prompt_tokens_details", "completion_tokens"
		}
		total := number(b, Field(b, at, in))
		u.Read = number(b, Field(b, at, details, "cached_tokens"))
		u.Write5m = number(b, Field(b, at, details, "cache_write_tokens"))
		u.Input, u.Output = max(0, total-u.Read-u.Write5m), number(b, Field(b, at, out))
		return
	}
	set := func(to *int64, path ...string) {
		if f := Field(b, at, path...); f.Exists() && string(f.Of(b)) != "null" {
			*to = number(b, f)
		}
	}
	set(&u.Input, "input_tokens")
	set(&u.Read, "cache_read_input_tokens")
	set(&u.Output, "output_tokens")
	written := int64(-1)
	set(&written, "cache_creation_input_tokens")
	if written >= 0 {
		u.Write1h = min(u.Write1h, written)
		set(&u.Write1h, "cache_creation", "ephemeral_1h_input_tokens")
		u.Write5m = max(0, written-u.Write1h)
	}
}

func (s *Stream) begin(index int, block []byte) Step {
	s.size += blockSize + len(block)
	w := Whole(block)
	g := &building{start: block, out: Out{Index: index, Type: Text(block, "type"), ID: Text(block, "id"), Name: Text(block, "name")}}
	switch g.out.Type {
	case TypeText:
		g.text = append(g.text, Text(block, "text")...)
	case "redacted_thinking":
		g.out.Type = TypeThinking
	case "server_tool_use", "mcp_tool_use":
		g.out.Server = true
	}
	g.text = append(g.text, Text(block, "thinking")...)
	g.sign = append(g.sign, Text(block, "signature")...)
	if in := Field(block, w, "input"); in.Exists() && string(in.Of(block)) != "{}" {
		g.args = append(g.args, in.Of(block)...)
	}
	s.open[index] = g
	return Step{Open, &g.out}
}

func (s *Stream) delta(index int, b []byte, at Span) Step {
	g := s.open[index]
	if g == nil {
		s.Unclear = "a block has no beginning"
		return Step{Kind: Delta}
	}
	s.size += at.To - at.From
	switch String(b, Field(b, at, "type")) {
	case "text_delta":
		g.text = append(g.text, String(b, Field(b, at, "text"))...)
	case "thinking_delta":
		g.text = append(g.text, String(b, Field(b, at, "thinking"))...)
	case "signature_delta":
		g.sign = append(g.sign, String(b, Field(b, at, "signature"))...)
	case "input_json_delta":
		g.args = append(g.args, String(b, Field(b, at, "partial_json"))...)
	case "citations_delta":
		g.cites = append(g.cites, append([]byte(nil), Field(b, at, "citation").Of(b)...))
	default:
		g.lost = true
	}
	return Step{Delta, &g.out}
}

func (s *Stream) finish(index int) Step {
	g := s.open[index]
	if g == nil {
		s.Unclear = "a block has no beginning"
		return Step{Kind: Close}
	}
	delete(s.open, index)
	g.assemble()
	s.Lost = s.Lost || g.lost
	s.Blocks = append(s.Blocks, g.out)
	return Step{Close, &g.out}
}

// assemble makes the block of its beginning and its deltas.
func (g *building) assemble() {
	raw := g.start
	set := func(name string, val []byte) { raw = Apply(raw, []Splice{Set(raw, name, val)}) }
	kind := Text(g.start, "type")
	switch kind {
	case "text":
		g.out.Text = string(g.text)
		set("text", Quote(g.out.Text))
	case "thinking":
		set("thinking", Quote(string(g.text)))
		if len(g.sign) > 0 {
			set("signature", Quote(string(g.sign)))
		}
	case "tool_use", "server_tool_use", "mcp_tool_use":
		g.out.Args = g.args
		if len(g.args) == 0 {
			g.args = []byte("{}")
		}
		if json.Valid(g.args) { // else the input stays as it began, empty
			set("input", g.args)
		}
	}
	if len(g.cites) > 0 {
		set("citations", concat("[", g.cites, "]"))
	}
	g.out.Raw = raw
}

func (s *Stream) responses(e Event) Step {
	b, w := e.Data, Whole(e.Data)
	index := s.index(b, Field(b, w, "output_index"))
	switch kind := Text(b, "type"); kind {
	case "response.created":
		s.response(b)
		return Step{Kind: Start}
	case "response.output_item.added":
		o := ResponsesOut(index, Field(b, w, "item").Of(b))
		s.open[index] = &building{out: o}
		s.size += blockSize + len(o.Raw)
		return Step{Open, &o}
	case "response.output_item.done":
		o := ResponsesOut(index, append([]byte(nil), Field(b, w, "item").Of(b)...))
		if g := s.open[index]; g != nil && !g.out.Item && (g.out.Type == TypeCall || o.Type == TypeCall) && !g.is(&o) {
			s.Unclear = "a call ends as another one"
		}
		delete(s.open, index)
		s.Blocks = append(s.Blocks, o)
		s.size += blockSize + len(o.Raw)
		return Step{Close, &o}
	case "response.completed", "response.incomplete":
		s.Done, s.Stop = true, "completed"
		if kind == "response.incomplete" {
			s.Stop = "incomplete"
		}
		s.response(b)
		return Step{Kind: End}
	case "response.failed", "error":
		s.response(b)
		s.Failed = true
		return Step{Kind: Failure}
	}
	if g := s.open[index]; g != nil && Field(b, w, "output_index").Exists() {
		if g.out.Type == TypeCall {
			g.args = append(g.args, Text(b, "delta")...)
			s.size += len(b)
			for _, name := range []string{"arguments", "input"} {
				if whole := Text(b, name); whole != "" {
					g.whole = append(g.whole, whole)
				}
			}
		}
		return Step{Delta, &g.out}
	}
	return Step{}
}

// response reads the answer as a whole in an event: a stream that is resumed does not have the first one.
func (s *Stream) response(b []byte) {
	s.ID, s.Model = cmp.Or(s.ID, Text(b, "response", "id")), cmp.Or(s.Model, Text(b, "response", "model"))
	s.usage(b, Field(b, Whole(b), "response", "usage"))
}

// is reports whether a call of Responses ends as it began and came: clients differ in what of it they execute.
func (g *building) is(o *Out) bool {
	same := func(args string) bool { return args == "" || args == string(o.Args) }
	return g.out.Type == o.Type && g.out.ID == o.ID && g.out.Name == o.Name && g.out.Custom == o.Custom && same(string(g.out.Args)) && same(string(g.args)) &&
		!slices.ContainsFunc(g.whole, func(args string) bool { return !same(args) })
}

// Output are the output items of the event that ends an answer of Responses.
func Output(b []byte) (out []Out) {
	_ = Array(b, Field(b, Whole(b), "response", "output"), func(i int, at Span) error {
		out = append(out, ResponsesOut(i, at.Of(b)))
		return nil
	})
	return out
}

// arguments are those of a call of OpenAI, a string: a client may take what is none.
func arguments(b []byte, at Span) []byte {
	if at.Exists() && b[at.From] != '"' && string(at.Of(b)) != "null" {
		return at.Of(b)
	}
	return []byte(String(b, at))
}

// shellCall is a call that Codex executes by its id where it has no call_id.
const shellCall = "local_shell_call"

// ResponsesOut reads an output item of Responses.
func ResponsesOut(index int, item []byte) Out {
	o := Out{Index: index, Type: Text(item, "type"), ID: Text(item, "call_id"), Name: Text(item, "name"), Raw: item}
	switch o.Type {
	case "function_call":
		o.Type, o.Args = TypeCall, arguments(item, Field(item, Whole(item), "arguments"))
	case "custom_tool_call":
		o.Type, o.Args, o.Custom = TypeCall, arguments(item, Field(item, Whole(item), "input")), true
	case "reasoning":
		o.Type = TypeThinking
	case "message":
		o.Type = TypeText
		_ = Array(item, Field(item, Whole(item), "content"), func(_ int, at Span) error {
			o.Text += String(item, Field(item, at, "text"))
			return nil
		})
	default:
		if o.Type == shellCall {
			o.ID = cmp.Or(o.ID, Text(item, "id"))
		}
		if o.Item = strings.HasSuffix(o.Type, "_call") && o.ID != ""; o.Item {
			o.Type, o.Name, o.Args = TypeCall, cmp.Or(o.Name, strings.TrimSuffix(o.Type, "_call")), item
		}
		o.Server = !o.Item
	}
	return o
}
