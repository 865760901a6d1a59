package plugins

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/messages"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/internal/schema"
	"github.com/mortise-dev/mortise/phases"
)

// Bounds on a tool and on what it answers, in bytes.
const (
	maxToolDescription = 8 << 10
	maxResultBytes     = 4 << 20
	maxTicketText      = 4 << 10
	maxToolBlocks      = 256
)

// Tools are the tools that plugins register. It is an agent.Tools: list it there, or
// join it with others. It is safe for concurrent use, as long as its Set is open.
type Tools struct {
	list   []abi.Tool
	byName map[string]tool
}

// tool is one tool and who answers for it.
type tool struct {
	plugin *Plugin
	schema *schema.Schema
}

// Tools returns the tools of the loaded plugins. A tool that is described wrongly, a
// name that two plugins use, and a plugin that lists tools without answering call_tool
// are errors that name the plugin.
func (s *Set) Tools() (*Tools, error) {
	out := &Tools{byName: make(map[string]tool)}
	var errs []error
	for _, each := range s.Plugins() {
		p, ok := each.(*Plugin)
		if !ok {
			continue
		}
		for i := range p.shape.Tools {
			if err := out.add(p, p.shape.Tools[i]); err != nil {
				errs = append(errs, fmt.Errorf("plugins: %q: %w", p.shape.Name, err))
			}
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return out, nil
}

func (t *Tools) add(p *Plugin, d abi.Tool) error {
	g := p.live.Edition().Guest
	if err := g.Require(abi.ExportCallTool); err != nil {
		return err
	}
	switch other, taken := t.byName[d.Name]; {
	case taken:
		return fmt.Errorf("tool already registered: %s: plugin %q has one of that name; load one of the two", d.Name, other.plugin.shape.Name)
	case !regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`).MatchString(d.Name):
		return fmt.Errorf("the name of tool %.80q must match ^[a-zA-Z0-9_-]{1,64}$, which is what providers take", d.Name)
	case len(d.Description) > maxToolDescription:
		return fmt.Errorf("tool %q: its description has %d bytes, more than the %d that are allowed", d.Name, len(d.Description), maxToolDescription)
	}
	switch d.Kind {
	case "", abi.ToolRead, abi.ToolSearch, abi.ToolEdit, abi.ToolExecute, abi.ToolOther:
	default:
		return fmt.Errorf("tool %q: kind %.40q is not one of read, search, edit, execute, other", d.Name, d.Kind)
	}
	compiled, err := g.CompileTool(&d)
	if err != nil {
		return err
	}
	t.list = append(t.list, d)
	t.byName[d.Name] = tool{plugin: p, schema: compiled}
	return nil
}

// Of returns the tools of some plugins only, as of those whose hooks are active. A name
// that no plugin with tools has is no error: most have none.
func (t *Tools) Of(plugins ...string) *Tools {
	out := &Tools{byName: make(map[string]tool)}
	for _, d := range t.list {
		if slices.Contains(plugins, t.Owner(d.Name)) {
			out.list = append(out.list, d)
			out.byName[d.Name] = t.byName[d.Name]
		}
	}
	return out
}

// Tools lists them, in the order of the plugins.
func (t *Tools) Tools() []abi.Tool { return append([]abi.Tool(nil), t.list...) }

// Owner names the plugin that registers a tool, or nothing.
func (t *Tools) Owner(name string) string {
	found, ok := t.byName[name]
	if !ok {
		return ""
	}
	return found.plugin.shape.Name
}

// CallTool has the plugin execute a call. Arguments that do not fit the tool's
// schema are an error result, and the guest never sees them. Within a run, whose
// phases.Invocation ctx holds, the guest gets the plugin's state, the run's identity and
// the messages that it asks for, and may reply with updates and effects, which
// phases.Runtime.Settle applies. The error is that of the guest or of ctx, or names what is
// wrong with the answer.
func (t *Tools) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	found, ok := t.byName[call.Name]
	if !ok {
		return abi.ToolResult{}, fmt.Errorf("plugins: tool '%.80s' not found", call.Name)
	}
	if err := found.schema.Check(call.Arguments); err != nil {
		return abi.ToolResult{
			CallID: call.ID, ToolName: call.Name, Status: abi.ToolError, Message: "Invalid arguments: " + bounded(err.Error(), maxTicketText),
		}, nil
	}
	reply, err := found.plugin.callTool(ctx, &call)
	for guest.NotBegun(err) {
		reply, err = found.plugin.callTool(ctx, &call)
	}
	if err != nil {
		if said, ok := errors.AsType[*host.GuestError](err); ok {
			return abi.ToolResult{CallID: call.ID, ToolName: call.Name, Status: abi.ToolError, Message: "Execution failed: " + bounded(said.Error(), maxTicketText)}, nil
		}
		return abi.ToolResult{}, fmt.Errorf("plugins: %q: tool %s: %w", found.plugin.shape.Name, call.Name, err)
	}
	result := abi.ToolResult{
		CallID: call.ID, ToolName: call.Name, Status: reply.Status, Content: reply.Content, Data: reply.Data,
		Message: reply.Message, Ticket: reply.Ticket,
	}
	err = checkResult(&result)
	if err == nil {
		err = found.plugin.reply(ctx, &reply)
	}
	if err != nil {
		return abi.ToolResult{}, fmt.Errorf("plugins: %q: tool %s: %w", found.plugin.shape.Name, call.Name, err)
	}
	return result, nil
}

// callTool calls the guest in use now, with what it may know of the run.
func (p *Plugin) callTool(ctx context.Context, call *abi.ToolCall) (abi.ToolReply, error) {
	var reply abi.ToolReply
	ed, err := p.live.Current(ctx)
	if err != nil {
		return reply, err
	}
	g := ed.Guest
	request := abi.ToolRequest{
		ID: call.ID, Name: call.Name, Kind: call.Kind, Arguments: call.Arguments, IdempotencyKey: call.IdempotencyKey,
		Resume: call.Resume, ABI: g.Version(), Config: p.entry.Config,
	}
	if i := phases.InvocationOf(ctx); i != nil {
		request.Run, request.Step, request.NowMS = i.Run, i.Step, i.At.UnixMilli()
		request.MessagesTotal, request.State = i.MessagesTotal, i.State(p.shape.Name)
		if g.ReadsMore() {
			ctx = messages.WithRange(ctx, more(ctx, g, &abi.Event{Run: i.Run, Step: i.Step}))
		}
	}
	err = g.Call(ctx, abi.ExportCallTool, &request, &reply)
	return reply, err
}

// reply hands on what the tool wants done beyond its result.
func (p *Plugin) reply(ctx context.Context, r *abi.ToolReply) error {
	if len(r.Updates)+len(r.Effects) == 0 {
		return nil
	}
	i := phases.InvocationOf(ctx)
	if i == nil {
		return errors.New("the reply has updates or effects, and the call belongs to no run")
	}
	return i.Reply(p.shape.Name, &abi.Reply{Updates: r.Updates, Effects: r.Effects})
}

// checkResult returns what is wrong with an answer: a model provider, or the program that
// decides about a ticket, must be able to take it.
func checkResult(r *abi.ToolResult) error {
	switch r.Status {
	case "", abi.ToolSuccess, abi.ToolError, abi.ToolPending:
	default:
		return fmt.Errorf("the result's status %.40q is not one of success, error, pending", r.Status)
	}
	size := len(r.Message)
	for i := range r.Content {
		b := &r.Content[i]
		switch b.Type {
		case abi.BlockText, abi.BlockImage, abi.BlockDocument, abi.BlockAudio, abi.BlockVideo:
		default:
			return fmt.Errorf("content block %d of the result: type %.40q is not one of text, image, document, audio, video", i, b.Type)
		}
		size += len(b.Text) + len(b.Data) + len(b.URL) + len(b.Title) + len(b.MediaType)
	}
	if size > maxResultBytes || len(r.Content) > maxToolBlocks {
		return fmt.Errorf("the result has %d bytes in %d blocks; %d in %d are allowed", size, len(r.Content), maxResultBytes, maxToolBlocks)
	}
	return checkTicket(r)
}

func checkTicket(r *abi.ToolResult) error {
	k := r.Ticket
	switch {
	case k == nil:
		return nil
	case r.Status != abi.ToolPending:
		return errors.New("the result has a ticket, and is not pending")
	case k.ID == "" || len(k.ID) > 128 || len(k.Action) > maxTicketText || len(k.Message) > maxTicketText:
		return fmt.Errorf("the ticket has no id, or a text longer than %d bytes", maxTicketText)
	}
	switch k.Mode {
	case "", abi.ResumeReplay, abi.ResumeUseDecision, abi.ResumePassDecision:
		return nil
	default:
		return fmt.Errorf("the ticket's mode %.40q is not known", k.Mode)
	}
}

func bounded(s string, limit int) string { return s[:min(len(s), limit)] }
