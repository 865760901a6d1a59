package main

import (
	"context"
	"io"
)

// Run is run, for tests.
func Run(ctx context.Context, args []string, out, errs io.Writer) int {
	return run(ctx, args, out, errs)
}

// MergeData is mergeData, for tests.
func MergeData(in []byte) ([]byte, error) { return mergeData(in) }
