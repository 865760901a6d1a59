package exit

import (
	"errors"
	"fmt"
	"strings"
)

// JoinedErrors returns what errors.Join has joined, or nothing.
func JoinedErrors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != joinText(joined.Unwrap()) {
		return nil
	}
	return joined.Unwrap()
}

func joinText(errs []error) string {
	texts := make([]string, len(errs))
	for i, e := range errs {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "\n")
}

// Each takes joined errors apart.
func Each(errs ...error) (out []error) {
	for _, err := range errs {
		if joined := JoinedErrors(err); joined != nil {
			out = append(out, Each(joined...)...)
		} else if err != nil {
			out = append(out, err)
		}
	}
	return out
}

// Under joins errors, each with a key before it.
func Under(key string, errs ...error) error {
	out := Each(errs...)
	for i, err := range out {
		out[i] = fmt.Errorf("%s: %w", key, err)
	}
	return errors.Join(out...)
}
