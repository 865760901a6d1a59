//go:build !unix

package checkcmd

import "github.com/mortise-dev/mortise/internal/cli/check"

func checkFiles() check.Finding { return check.Fine("there is no limit on this system") }
