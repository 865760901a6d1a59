package proxy

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// identity is how a client names a request.
type identity struct {
	client  string
	session string
	agent   string
	parent  string
	kind    string
}

// claude is the client Claude Code.
const claude = "claude"

// identify reads the ids that clients are known to send.
func identify(h http.Header, r *wire.Request) identity {
	id := identity{kind: lane.Main}
	first := func(names ...string) string {
		for _, n := range names {
			if v := h.Get(n); v != "" {
				return clip(v)
			}
		}
		return ""
	}
	switch {
	case h.Get("X-Claude-Code-Session-Id") != "" || strings.HasPrefix(h.Get("User-Agent"), "claude-cli"):
		id.client, id.session = claude, first("X-Claude-Code-Session-Id")
		if id.session == "" {
			id.session = clip(metadataSession(r))
		}
		id.agent, id.parent = first("X-Claude-Code-Agent-Id"), first("X-Claude-Code-Parent-Agent-Id")
	case h.Get("X-Codex-Turn-Metadata") != "" || strings.HasPrefix(strings.ToLower(h.Get("User-Agent")), "codex"):
		id.client, id.session = "codex", first("Session-Id", "Session_id", "Conversation_id")
		id.agent, id.parent = first("Thread-Id"), first("X-Codex-Parent-Thread-Id")
		id.kind = codexKind(h.Get("X-Codex-Turn-Metadata"))
	case first("X-Session-Affinity", "X-Session-Id") != "":
		id.client, id.session = "opencode", first("X-Session-Affinity", "X-Session-Id")
		id.parent = first("X-Parent-Session-Id")
	default:
		id.session = first("Session_id", "Session-Id")
		if strings.HasPrefix(h.Get("User-Agent"), "pi/") || id.session != "" {
			id.client = "pi"
		}
	}
	if side(id, r) {
		id.kind = lane.Side
	}
	return id
}

// clip bounds an id.
func clip(s string) string { return s[:min(len(s), 256)] }

// codexKind reads the kind that Codex gives a request.
func codexKind(header string) string {
	var m struct {
		Kind string `json:"request_kind"`
	}
	if json.Unmarshal([]byte(header), &m) == nil && m.Kind == "prewarm" {
		return lane.Side
	}
	return lane.Main
}

// metadataSession reads the session of metadata.user_id, which is JSON in a string.
func metadataSession(r *wire.Request) string {
	var m struct {
		Session string `json:"session_id"`
	}
	text := wire.Text(r.Body, "metadata", "user_id")
	if json.Unmarshal([]byte(text), &m) == nil {
		return m.Session
	}
	_, rest, _ := strings.Cut(text, "_session_")
	return rest
}

// side reports whether a request is no part of a conversation: a title, a search, a summary by the client's own model.
func side(id identity, r *wire.Request) bool {
	if id.kind == lane.Side {
		return true
	}
	if len(r.Tools) == 0 {
		return id.client != ""
	}
	for _, t := range r.Tools {
		if !strings.HasPrefix(wire.Text(t.Of(r.Body), "type"), "web_search") {
			return false
		}
	}
	return r.Top["tool_choice"].Exists()
}
