package providertest

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"time"
)

// mediaTokens is what an image or a document counts.
const mediaTokens = 1500

type digest = [sha256.Size]byte

// prompt is a request as the model reads it: four bytes are one token.
type prompt struct {
	text  []byte
	marks []mark
}

// mark is the end of a block, with the lifetime of the cache breakpoint at it, if there is one.
type mark struct {
	end int
	ttl time.Duration
}

func (p *prompt) add(parts ...string) {
	for _, s := range parts {
		p.text = append(append(p.text, s...), 0)
	}
}

// media adds an image or a document.
func (p *prompt) media(source string) {
	sum := sha256.Sum256([]byte(source))
	p.text = append(p.text, sum[:]...)
	p.text = append(p.text, make([]byte, 4*mediaTokens-len(sum))...)
}

// raw adds JSON in the order of its keys, on which the real caches depend.
func (p *prompt) raw(v json.RawMessage) {
	var b bytes.Buffer
	if json.Compact(&b, v) == nil {
		p.add(b.String())
	}
}

// mark ends a block.
func (p *prompt) mark(c *cacheControl) {
	m := mark{end: len(p.text)}
	if c != nil {
		m.ttl = c.lifetime()
	}
	p.marks = append(p.marks, m)
}

func (p *prompt) tokens() int64 { return tokens(len(p.text)) }

func tokens(n int) int64 { return int64(n+3) / 4 }

// cut splits text into chunks of about three tokens, at the borders of runes.
func cut(text string) []string {
	const size = 12
	var out []string
	start := 0
	for i := range text {
		if i-start >= size {
			out, start = append(out, text[start:i]), i
		}
	}
	if start < len(text) {
		out = append(out, text[start:])
	}
	return out
}
