package config

import (
	"bytes"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"github.com/goccy/go-yaml/token"

	"github.com/mortise-dev/mortise/internal/exit"
)

// Problem is one in a config. Line is 0 when it is not known; Key is the nearest one that the file has.
type Problem struct {
	Line    int    `json:"line,omitempty"`
	Column  int    `json:"column,omitempty"`
	Key     string `json:"key,omitempty"`
	Problem string `json:"problem"`

	// Code is the exit code that it is worth.
	Code exit.Code `json:"-"`
}

// maxProblems bounds how many problems are looked for in a file.
const maxProblems = 100

// Problems decodes a config without what is wrong in it, and returns all that is.
func Problems(data []byte, names Names) (*Config, []Problem) {
	file, err := parser.ParseBytes(data, 0)
	if err != nil {
		return nil, []Problem{problemAt(data, err)}
	}
	cfg := &Config{names: names}
	if len(file.Docs) > 1 {
		return nil, []Problem{{Line: file.Docs[1].Start.Position.Line, Problem: "there is more than one document; keep one", Code: exit.Config}}
	}
	var out []Problem
	for len(out) < maxProblems && len(file.Docs) == 1 && file.Docs[0].Body != nil {
		next := &Config{names: names}
		err := yaml.NewDecoder(bytes.NewReader(nil), yaml.Strict()).DecodeFromNode(file.Docs[0].Body, next)
		cfg = next
		if err == nil {
			break
		}
		out = append(out, problemAt(data, err))
		if _, at := wrongAt(data, err); at == nil || !prune(file.Docs[0].Body, at.Position) {
			return nil, out
		}
	}
	cfg.Compaction.withDefaults()
	for _, err := range exit.Each(cfg.validate()) {
		p := Problem{Problem: err.Error(), Code: exit.Config}
		p.Locate(file)
		out = append(out, p)
	}
	return cfg, out
}

func problemAt(data []byte, err error) Problem {
	text, at := wrongAt(data, err)
	p := Problem{Problem: strings.TrimSpace(text), Code: exit.Config}
	if at != nil {
		p.Line, p.Column = at.Position.Line, at.Position.Column
		if key := keyOf(data, at); strings.HasPrefix(text, key) || strings.HasPrefix(text, "there is no key") {
			p.Key = key
		}
	}
	return p
}

// prune removes the key or the element at a position, and reports whether there is one.
func prune(n ast.Node, at *token.Position) bool {
	switch n := n.(type) {
	case *ast.MappingNode:
		for i, v := range n.Values {
			if starts(v.Key, at) || starts(v.Value, at) {
				n.Values = append(n.Values[:i], n.Values[i+1:]...)
				return true
			}
			if prune(v.Value, at) {
				return true
			}
		}
	case *ast.SequenceNode:
		for i, v := range n.Values {
			if prune(v, at) {
				return true
			}
			if starts(v, at) {
				n.Values = append(n.Values[:i], n.Values[i+1:]...)
				return true
			}
		}
	}
	return false
}

func starts(n ast.Node, at *token.Position) bool {
	if n == nil || n.GetToken() == nil {
		return false
	}
	p := n.GetToken().Position
	return p.Line == at.Line && p.Column == at.Column
}

// Locate finds the key at which the text of a problem begins, as in "agents.a: model: is missing".
func (p *Problem) Locate(file *ast.File) {
	if file == nil || len(file.Docs) == 0 || file.Docs[0].Body == nil {
		return
	}
	here, keys := file.Docs[0].Body, []string(nil)
	for part := range strings.SplitSeq(strings.TrimPrefix(p.Problem, "config: "), ": ") {
		part, _, _ = strings.Cut(part, " (")
		path := strings.NewReplacer("[", ".[", `"`, "").Replace(part)
		for path != "" {
			next, key, rest := step(here, path)
			if next == nil {
				return
			}
			keys = append(keys, strings.TrimSuffix(strings.TrimSuffix(path, rest), "."))
			p.Line, p.Column = key.Position.Line, key.Position.Column
			p.Key = strings.ReplaceAll(strings.Join(keys, "."), ".[", "[")
			here, path = next, rest
		}
	}
}

// step goes from a node to the one whose key a path begins with, and returns its key and the rest of the path.
func step(n ast.Node, path string) (next ast.Node, key *token.Token, rest string) {
	switch n := n.(type) {
	case *ast.MappingNode:
		for _, v := range n.Values {
			name := v.Key.GetToken().Value
			if after, ok := strings.CutPrefix(path, name); ok && (after == "" || after[0] == '.') {
				return v.Value, v.Key.GetToken(), strings.TrimPrefix(after, ".")
			}
		}
	case *ast.SequenceNode:
		index, after, _ := strings.Cut(path, "]")
		i, err := strconv.Atoi(strings.TrimPrefix(index, "["))
		if err == nil && i >= 0 && i < len(n.Values) {
			return n.Values[i], n.Values[i].GetToken(), strings.TrimPrefix(after, ".")
		}
	}
	return nil, nil, ""
}
