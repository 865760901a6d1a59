package config

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// Duration is a time.Duration written as 1m30s.
type Duration time.Duration

// UnmarshalYAML reads a duration.
func (d *Duration) UnmarshalYAML(node ast.Node) error {
	text := node.GetToken().Value
	v, err := parseDuration(text)
	if err != nil {
		return &valueError{node.GetToken(), fmt.Sprintf("%q is not a duration: write for example 500ms, 10s, 2m or 30d", text)}
	}
	if v < 0 {
		return &valueError{node.GetToken(), fmt.Sprintf("%q is negative; write 0s or more", text)}
	}
	*d = Duration(v)
	return nil
}

// maxDays is as many as a duration can have.
const maxDays = 100_000

// parseDuration reads a duration, whole days too.
func parseDuration(text string) (time.Duration, error) {
	if days, ok := strings.CutSuffix(text, "d"); ok {
		n, err := strconv.Atoi(days)
		if err != nil || n < -maxDays || n > maxDays {
			return 0, errors.New("the days are no whole number, or too many")
		}
		return time.Duration(n) * 24 * time.Hour, nil
	}
	return time.ParseDuration(text)
}

// Checksum is a SHA-256 in hexadecimal, as sha256sum prints it.
type Checksum string

// UnmarshalYAML reads a checksum. One of digits alone is a number in YAML, and would lose some.
func (c *Checksum) UnmarshalYAML(node ast.Node) error {
	text := node.GetToken().Value
	switch {
	case node.Type() != ast.StringType && node.Type() != ast.LiteralType:
		return &valueError{node.GetToken(), fmt.Sprintf("is read as %s; put it in quotes: sha256: \"%.64s\"", nodeKind(node.Type()), text)}
	case !checksumText().MatchString(text):
		return &valueError{node.GetToken(), "is no checksum; write the 64 hexadecimal digits that sha256sum prints"}
	}
	*c = Checksum(text)
	return nil
}

func checksumText() *regexp.Regexp { return regexp.MustCompile(`^(sha256:)?[0-9a-fA-F]{64}$`) }
