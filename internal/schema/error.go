package schema

import (
	"errors"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
)

// Bounds on the text about a value that a schema refuses. The library would write down each of a million reasons, with
// the whole value.
const (
	maxReasons     = 16
	maxReasonItems = 8
	maxReasonText  = 80
	maxReasonBytes = 2_000
)

// oneLine turns the library's tree of reasons into one sentence.
func oneLine(err error) string {
	if tree, ok := err.(*jsonschema.ValidationError); ok { //nolint:errorlint // what wraps one has a text of its own
		left := maxReasons
		err = pruned(tree, &left)
	}
	var reasons []string
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimLeft(strings.TrimSpace(line), "- ")
		if line != "" && !strings.HasPrefix(line, "jsonschema validation failed") {
			reasons = append(reasons, line)
		}
	}
	return clip(strings.Join(reasons, "; "), maxReasonBytes)
}

// pruned is the tree with so many reasons at most, each of them short.
func pruned(tree *jsonschema.ValidationError, left *int) *jsonschema.ValidationError {
	*left--
	out := *tree
	out.ErrorKind = shortKind(tree.ErrorKind)
	out.InstanceLocation = shortList(tree.InstanceLocation)
	out.Causes = nil
	for _, cause := range tree.Causes {
		if *left <= 0 {
			break
		}
		out.Causes = append(out.Causes, pruned(cause, left))
	}
	return &out
}

// shortKind is a reason without the most of what it holds of the value.
func shortKind(k jsonschema.ErrorKind) jsonschema.ErrorKind {
	switch k := k.(type) {
	case *kind.Pattern:
		return &kind.Pattern{Got: clip(k.Got, maxReasonText), Want: k.Want}
	case *kind.Format:
		short := *k
		if text, ok := k.Got.(string); ok {
			short.Got = clip(text, maxReasonText)
		}
		short.Err = errors.New(clip(k.Err.Error(), 2*maxReasonText))
		return &short
	case *kind.AdditionalProperties:
		return &kind.AdditionalProperties{Properties: shortList(k.Properties)}
	case *kind.PropertyNames:
		return &kind.PropertyNames{Property: clip(k.Property, maxReasonText)}
	case *kind.MinContains:
		return &kind.MinContains{Got: k.Got[:min(len(k.Got), maxReasonItems)], Want: k.Want}
	case *kind.MaxContains:
		return &kind.MaxContains{Got: k.Got[:min(len(k.Got), maxReasonItems)], Want: k.Want}
	}
	return k
}

// shortList clips a list and the texts in it.
func shortList(list []string) []string {
	out := slices.Clone(list[:min(len(list), maxReasonItems)])
	for n := range out {
		out[n] = clip(out[n], maxReasonText)
	}
	return out
}

// clip shortens a text to so many bytes.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "..."
}
