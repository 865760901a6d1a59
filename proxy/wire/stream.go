package wire

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

// Stream follows the events of an answer.
type Stream struct {
	Answer

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
	switch s.Protocol {
	case Messages:
		return s.messages(e)
	case Responses:
		return s.responses(e)
	case Chat:
	}
	return s.chat(e)
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

func (s *Stream) messages(e Event) Step {
	b, w := e.Data, Whole(e.Data)
	kind := Text(b, "type")
	index := int(number(b, Field(b, w, "index")))
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
		return Step{Kind: Delta}
	}
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
		return Step{Kind: Close}
	}
	delete(s.open, index)
	s.Lost = s.Lost || g.lost
	g.assemble()
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
		if end, err := value(g.args, 0); err == nil && space(g.args, end) == len(g.args) {
			set("input", g.args)
		} else {
			g.lost = true
		}
	}
	if len(g.cites) > 0 {
		set("citations", concat("[", g.cites, "]"))
	}
	g.out.Raw = raw
}

func (s *Stream) responses(e Event) Step {
	b, w := e.Data, Whole(e.Data)
	index := int(number(b, Field(b, w, "output_index")))
	switch kind := Text(b, "type"); kind {
	case "response.created":
		s.ID, s.Model = Text(b, "response", "id"), Text(b, "response", "model")
		return Step{Kind: Start}
	case "response.output_item.added":
		o := ResponsesOut(index, Field(b, w, "item").Of(b))
		s.open[index] = &building{out: o}
		return Step{Open, &o}
	case "response.output_item.done":
		o := ResponsesOut(index, append([]byte(nil), Field(b, w, "item").Of(b)...))
		delete(s.open, index)
		s.Blocks = append(s.Blocks, o)
		return Step{Close, &o}
	case "response.completed", "response.incomplete":
		s.Done, s.Stop = true, "completed"
		if kind == "response.incomplete" {
			s.Stop = "incomplete"
		}
		s.usage(b, Field(b, w, "response", "usage"))
		return Step{Kind: End}
	case "response.failed", "error":
		s.usage(b, Field(b, w, "response", "usage"))
		s.Failed = true
		return Step{Kind: Failure}
	}
	if g := s.open[index]; g != nil && Field(b, w, "output_index").Exists() {
		return Step{Delta, &g.out}
	}
	return Step{}
}

// Output are the output items of the event that ends an answer of Responses.
func Output(b []byte) (out []Out) {
	_ = Array(b, Field(b, Whole(b), "response", "output"), func(i int, at Span) error {
		out = append(out, ResponsesOut(i, at.Of(b)))
		return nil
	})
	return out
}

// ResponsesOut reads an output item of Responses.
func ResponsesOut(index int, item []byte) Out {
	o := Out{Index: index, Type: Text(item, "type"), ID: Text(item, "call_id"), Name: Text(item, "name"), Raw: item}
	switch o.Type {
	case "function_call":
		o.Type, o.Args = TypeCall, []byte(Text(item, "arguments"))
	case "custom_tool_call":
		o.Type, o.Args, o.Custom = TypeCall, []byte(Text(item, "input")), true
	case "reasoning":
		o.Type = TypeThinking
	case "message":
		o.Type = TypeText
		_ = Array(item, Field(item, Whole(item), "content"), func(_ int, at Span) error {
			o.Text += String(item, Field(item, at, "text"))
			return nil
		})
	default:
		o.Server = true
	}
	return o
}
