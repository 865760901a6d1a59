package mcp

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/schema"
)

// Bounds on names, as providers have them, and on what describes a tool, in bytes.
const (
	maxServerName  = 32
	maxName        = 64
	maxDescription = 8 << 10
	maxSchema      = 64 << 10
)

// maxPages bounds a listing of tools.
const maxPages = 100

// tool is a tool of a server.
type tool struct {
	def    abi.Tool
	server *server
	remote string // its name there
	schema *schema.Schema
}

// list asks a server for its tools. Those that do not fit are left out.
func (s *server) list(ctx context.Context, c *connection) ([]*tool, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.StartTimeout, fmt.Errorf("it did not list its tools within %v", s.cfg.StartTimeout))
	defer cancel()
	var out []*tool
	cursor, left := "", 0
	for range maxPages {
		page, err := c.session.ListTools(ctx, &sdk.ListToolsParams{Cursor: cursor})
		if err = c.explain(ctx, err); errors.Is(err, errOver) {
			err = c.cause
		}
		if err != nil {
			return nil, fmt.Errorf("list its tools: %w", err)
		}
		for _, t := range page.Tools {
			switch {
			case !s.wants(t.Name):
			case len(out) == s.cfg.MaxTools:
				left++
			default:
				out = s.accept(ctx, out, t)
			}
		}
		if cursor = page.NextCursor; cursor == "" {
			break
		}
	}
	if left > 0 || cursor != "" {
		s.log.WarnContext(ctx, "mcp tools left out: there are too many; use Include, or raise MaxTools", "max", s.cfg.MaxTools, "more", left)
	}
	return out, nil
}

// accept adds a tool to a list if it fits.
func (s *server) accept(ctx context.Context, list []*tool, t *sdk.Tool) []*tool {
	one, err := s.tool(t)
	if err == nil && slices.ContainsFunc(list, func(o *tool) bool { return o.def.Name == one.def.Name }) {
		err = errors.New("the server lists it twice")
	}
	if err != nil {
		s.log.WarnContext(ctx, "mcp tool left out", "tool", clip(t.Name, maxName), "error", s.text(err))
		return list
	}
	return append(list, one)
}

func (s *server) wants(name string) bool {
	if slices.Contains(s.cfg.Exclude, name) {
		return false
	}
	return len(s.cfg.Include) == 0 || slices.Contains(s.cfg.Include, name)
}

// tool checks a tool, or returns why it does not fit.
func (s *server) tool(t *sdk.Tool) (*tool, error) {
	if len(t.Description) > maxDescription {
		return nil, fmt.Errorf("its description has %d bytes, more than the %d that are allowed", len(t.Description), maxDescription)
	}
	parameters, ok := t.InputSchema.(map[string]any)
	if !ok || parameters["type"] != "object" {
		return nil, errors.New(`its schema is not of the type "object"`)
	}
	text, err := json.Marshal(parameters)
	if err != nil || len(text) > maxSchema {
		return nil, fmt.Errorf("its schema has %d bytes, more than the %d that are allowed", len(text), maxSchema)
	}
	compiled, err := schema.Compile(parameters)
	if err != nil {
		return nil, fmt.Errorf("its schema: %w", err)
	}
	def := abi.Tool{Name: toolName(s.cfg.Name, t.Name), Description: t.Description, Parameters: parameters, Kind: s.cfg.Kinds[t.Name]}
	if def.Kind == "" {
		def.Kind = hinted(t.Annotations)
	}
	return &tool{def: def, server: s, remote: t.Name, schema: compiled}, nil
}

// check returns what is wrong with the arguments of a call.
func (t *tool) check(args any) error {
	if _, ok := args.(map[string]any); !ok && args != nil {
		return errors.New("they are not a JSON object")
	}
	return t.schema.Check(args)
}

// hinted is the kind of a tool by its author's hints.
func hinted(a *sdk.ToolAnnotations) abi.ToolKind {
	yes := func(b *bool) bool { return b != nil && *b }
	switch {
	case a == nil:
		return abi.ToolOther
	case a.ReadOnlyHint:
		return abi.ToolRead
	case yes(a.DestructiveHint) && yes(a.OpenWorldHint):
		return abi.ToolExecute
	case yes(a.DestructiveHint):
		return abi.ToolEdit
	}
	return abi.ToolOther
}

// toolName is the name of a tool for providers. It depends on the two names alone: no other tool changes it.
func toolName(server, remote string) string {
	fitting := func(r rune) rune {
		if r == '_' || r == '-' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return '_'
	}
	plain := "mcp__" + server + "__" + remote
	name := strings.Map(fitting, plain)
	if name == plain && remote != "" && len(name) <= maxName {
		return name
	}
	sum := sha256.Sum256([]byte(plain))
	suffix := "_" + hex.EncodeToString(sum[:4])
	return name[:min(len(name), maxName-len(suffix))] + suffix
}
