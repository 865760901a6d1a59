package eval

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
)

// Limits on a file of probes.
const (
	maxProbes     = 100_000
	maxProbeBytes = 1 << 20
)

// Probe is a fact that a conversation holds. A file of probes has one JSON object
// on a line; fields that are not listed here are errors.
type Probe struct {
	// ID is unique in its file. Required.
	ID string `json:"id"`
	// Conversation names the one it is about. Required.
	Conversation string `json:"conversation"`
	// Question is what a user would ask. It grounds the answers.
	Question string `json:"question,omitempty"`
	// Answers are strings of which any one is enough. Required, also with keys.
	Answers []string `json:"answers"`
	// Keys are strings that count by themselves, in place of the answers.
	Keys []string `json:"keys,omitempty"`
	// Evidence names the messages that hold the fact, by id or index. It is kept
	// for people; no score reads it.
	Evidence []any `json:"evidence,omitempty"`
	// Reward is the outcome of the recorded run, where there was one. No score
	// reads it.
	Reward *float64 `json:"reward,omitempty"`
}

// needles are the strings that are looked for.
func (p *Probe) needles() []string {
	if len(p.Keys) > 0 {
		return p.Keys
	}
	return p.Answers
}

// validate reports what is missing.
func (p *Probe) validate() error {
	switch {
	case p.ID == "":
		return errors.New("id is missing")
	case p.Conversation == "":
		return errors.New("conversation is missing")
	case len(p.Answers) == 0:
		return errors.New("answers are missing; name at least one string")
	}
	for _, s := range slices.Concat(p.Answers, p.Keys) {
		if strings.TrimSpace(s) == "" {
			return errors.New("an answer or key is empty")
		}
	}
	return nil
}

// OpenProbes reads a file of probes.
func OpenProbes(path string) ([]Probe, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("eval: probes: %w", err)
	}
	defer f.Close()
	return ReadProbes(f, path)
}

// ReadProbes reads probes, one JSON object on a line; empty lines are skipped.
// The name is for errors.
func ReadProbes(r io.Reader, name string) ([]Probe, error) {
	var out []Probe
	seen := make(map[string]int)
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 64<<10), maxProbeBytes)
	n := 0
	for lines.Scan() {
		n++
		line := bytes.TrimSpace(lines.Bytes())
		if len(line) == 0 {
			continue
		}
		p, err := decodeProbe(line)
		if err == nil && seen[p.ID] > 0 {
			err = fmt.Errorf("id %q is that of line %d", p.ID, seen[p.ID])
		}
		if err == nil && len(out) == maxProbes {
			err = fmt.Errorf("there are more than %d probes", maxProbes)
		}
		if err != nil {
			return nil, fmt.Errorf("eval: probes: %s: line %d: %w", name, n, err)
		}
		seen[p.ID] = n
		out = append(out, p)
	}
	if err := lines.Err(); err != nil {
		if errors.Is(err, bufio.ErrTooLong) {
			err = fmt.Errorf("longer than %d bytes", maxProbeBytes)
		}
		return nil, fmt.Errorf("eval: probes: %s: line %d: %w", name, n+1, err)
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("eval: probes: %s: there are none; write one JSON object on a line", name)
	}
	return out, nil
}

func decodeProbe(line []byte) (Probe, error) {
	var p Probe
	dec := json.NewDecoder(bytes.NewReader(line))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&p); err != nil {
		return p, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return p, errors.New("something follows the object; write one object on a line")
	}
	err := p.validate()
	return p, err
}
