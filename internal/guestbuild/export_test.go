package main

import (
	"context"
	"io"
)

// Run is run, for tests.
func Run(ctx context.Context, args []string, out, errs io.Writer) int {
	return run(ctx, args, out, errs)
}
