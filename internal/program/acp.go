package program

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/acp"
)

// ServeACP serves the client on the standard streams, and then drains.
func (p *Program) ServeACP(ctx context.Context, in io.Reader, out io.Writer, of string, tools *acp.Tools) error {
	if err := p.Runtime.Start(ctx); err != nil {
		return err
	}
	kinds := p.toolKinds()
	err := acp.Serve(ctx, acp.Config{
		Server: p.server, Mailbox: p.Runtime.Mailbox(), Tools: tools, Agent: of,
		Kind: func(tool string) abi.ToolKind { return kinds[tool] }, Version: Version(), Logger: p.logger,
	}, in, out)
	ctx = context.WithoutCancel(ctx)
	err = errors.Join(err, p.drain(ctx, nil))
	ctx, cancel := context.WithTimeout(ctx, handOverTimeout)
	defer cancel()
	if left := p.Runtime.Mailbox().Close(ctx); left != nil { // an editor does not wait for the end of an answer
		p.logger.WarnContext(ctx, "runs are left to the next process", "error", left)
	}
	return err
}

// handOverTimeout is how long runs that did not end within the grace time have to reach a checkpoint.
const handOverTimeout = time.Second

// toolKinds are the kinds of the tools that are there when the program starts.
func (p *Program) toolKinds() map[string]abi.ToolKind {
	out := map[string]abi.ToolKind{}
	now := p.now.Load()
	for _, t := range agent.LayerTools(now.parts.Tools, now.servers.of(nil)).Tools() {
		out[t.Name] = t.Kind
	}
	return out
}
