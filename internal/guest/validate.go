package guest

import (
	"context"
	"fmt"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/abi"
)

// maxProblems is how many problems of a config an error lists.
const maxProblems = 8

// ValidateConfig checks an operator's config: first against the schema that the module
// gave, see [Guest.CheckConfig], then by the module's export validate, if it has one. The
// error wraps [ErrConfig] and lists what the module finds wrong.
func (g *Guest) ValidateConfig(ctx context.Context, config any) error {
	if err := g.CheckConfig(config); err != nil {
		return err
	}
	if config == nil || !g.caller.HasExport(abi.ExportValidate) {
		return nil
	}
	var found abi.Validation
	if err := g.Call(ctx, abi.ExportValidate, &abi.ValidateRequest{ABI: g.version, Config: config}, &found); err != nil {
		return err
	}
	if len(found.Problems) == 0 {
		return nil
	}
	return fmt.Errorf("guest: module %q: %w: %s", g.caller.Name(), ErrConfig, problems(found.Problems))
}

// problems lists what is wrong in one line.
func problems(list []abi.Problem) string {
	var out []string
	for i := range list[:min(len(list), maxProblems)] {
		text := sentence(list[i].Message)
		if text == "" {
			text = "is not accepted, and the module gives no reason"
		}
		if path := sentence(list[i].Path); path != "" {
			text = "at '" + path + "': " + text
		}
		out = append(out, text)
	}
	if n := len(list) - maxProblems; n > 0 {
		out = append(out, fmt.Sprintf("and %d more", n))
	}
	return strings.Join(out, "; ")
}

// maxProblemText bounds one text of a problem, in bytes.
const maxProblemText = 512

// sentence makes a guest's text fit for one line of an error.
func sentence(s string) string {
	s = strings.ToValidUTF8(s[:min(len(s), maxProblemText)], "")
	return strings.TrimSpace(strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, s))
}
