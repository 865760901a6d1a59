package main

import (
	"fmt"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// script is the model: in each run it reads so many parts of a document, one in each step, and then answers. It says the same
// whatever it is sent.
type script struct {
	// swapped is closed when the operator has swapped the policy: the second run waits for that.
	swapped chan struct{}

	mu    sync.Mutex
	parts int // that the run has read
	runs  int
}

// partsOfRun is how many parts a run reads. In the second run, the model waits after waitAfter of them.
const (
	partsOfRun = 9
	waitAfter  = 2
)

func documents() []string {
	return []string{"docs/config.md", "docs/http.md", "docs/conformance.md"}
}

// pace is the time before each chunk of an answer.
const pace = 5 * time.Millisecond

func (s *script) reply(providertest.Query) providertest.Answer {
	a, wait := s.next()
	if wait {
		<-s.swapped
	}
	a.Pace = pace
	return a
}

func (s *script) next() (a providertest.Answer, wait bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := documents()[s.runs%len(documents())]
	if s.parts == partsOfRun {
		s.parts, s.runs = 0, s.runs+1
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("I have read " + path + ".")}}, false
	}
	call := abi.ToolCall{
		ID: fmt.Sprintf("call_%d_%d", s.runs, s.parts), Name: "mcp__files__read", Arguments: map[string]any{"path": path, "part": s.parts},
	}
	s.parts++
	text := fmt.Sprintf("I read part %d of %s.", s.parts, path)
	a = providertest.Answer{Content: []abi.ContentBlock{abi.Text(text)}, Calls: []abi.ToolCall{call}}
	return a, s.runs == 1 && s.parts == waitAfter
}
