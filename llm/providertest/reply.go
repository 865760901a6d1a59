package providertest

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net/http"

	"github.com/mortise-dev/mortise/abi"
)

// reply is an answer in pieces, cut at the output limit.
type reply struct {
	pieces []piece
	stop   abi.StopReason
	usage  abi.Usage
}

type pieceKind string

// Kinds of pieces.
const (
	textPiece     pieceKind = "text"
	thinkingPiece pieceKind = "thinking"
	callPiece     pieceKind = "call"
	refusalPiece  pieceKind = "refusal"
)

// piece is one block of an answer. A call has id and name, thinking a signature.
type piece struct {
	kind      pieceKind
	text      string
	chunks    []string
	id, name  string
	signature string
}

// stopRefusal is the stop of an answer that the model refused.
const stopRefusal abi.StopReason = "refusal"

// compose makes an answer for a request, and its bill.
func (s *Server) compose(a *ask, ans *Answer) *reply {
	r := &reply{stop: ans.Stop}
	left := a.limit
	add := func(p piece) {
		all := p.chunks
		if all == nil {
			all = cut(p.text)
		}
		p.text, p.chunks = "", nil
		for _, c := range all {
			if left <= 0 {
				r.stop = abi.StopMaxTokens
				break
			}
			n := min(tokens(len(c)), left)
			left -= n
			r.usage.CompletionTokens += n
			if p.kind == thinkingPiece {
				r.usage.ThinkingTokens += n
			}
			p.text += c
			p.chunks = append(p.chunks, c)
		}
		if len(p.chunks) > 0 || left > 0 {
			r.pieces = append(r.pieces, p)
		}
	}
	if f := ans.Fault; f != nil && f.Refusal {
		r.stop = stopRefusal
		if f.Message != "" {
			add(piece{kind: refusalPiece, text: f.Message})
		}
	} else {
		s.pieces(a, ans, add)
	}
	if r.stop == "" {
		r.stop = abi.StopEndTurn
		if len(ans.Calls) > 0 {
			r.stop = abi.StopToolUse
		}
	}
	return r
}

func (s *Server) pieces(a *ask, ans *Answer, add func(piece)) {
	if a.must && (len(ans.Content) == 0 || ans.Content[0].Type != abi.BlockThinking) {
		add(s.thought("I consider the request."))
	}
	for _, b := range ans.Content {
		switch {
		case b.Type == abi.BlockText:
			add(piece{kind: textPiece, text: b.Text})
		case b.Type == abi.BlockThinking && a.shows:
			add(s.thought(b.Text))
		}
	}
	for _, c := range ans.Calls {
		text, ok := ans.RawArguments[c.ID]
		if !ok {
			text = "{}"
			if c.Arguments != nil {
				if b, err := json.Marshal(c.Arguments); err == nil {
					text = string(b)
				}
			}
		}
		add(piece{kind: callPiece, id: c.ID, name: c.Name, text: text})
	}
}

func (s *Server) thought(text string) piece {
	return piece{kind: thinkingPiece, text: text, signature: s.sign(text)}
}

// sign makes the signature of a thinking block, as the vendors do: opaque, and of no other
// text or server.
func (s *Server) sign(text string) string {
	m := hmac.New(sha256.New, s.secret)
	m.Write([]byte(text))
	return base64.StdEncoding.EncodeToString(append(m.Sum(nil), text...))
}

// signed reports whether the server made a signature, and for which text.
func (s *Server) signed(signature string) (text string, ok bool) {
	b, err := base64.StdEncoding.DecodeString(signature)
	if err != nil || len(b) < sha256.Size {
		return "", false
	}
	text = string(b[sha256.Size:])
	return text, hmac.Equal([]byte(signature), []byte(s.sign(text)))
}

// failure is the error that a Fault makes.
func (f *Fault) failure(api API) *failure {
	out := &failure{status: f.Status, kind: f.Type, message: f.Message, code: f.Type, after: f.RetryAfter}
	if out.status == 0 {
		out.status = http.StatusInternalServerError
		if api == AnthropicMessages {
			out.status = statusOverloaded
		}
	}
	if out.message == "" {
		out.message = "The server had an error while processing your request."
		if out.status == statusOverloaded {
			out.message = "Overloaded"
		}
	}
	return out
}

// statusOverloaded is Anthropic's.
const statusOverloaded = 529
