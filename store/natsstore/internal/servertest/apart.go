package servertest

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// Apart is the URL of a server in a process of its own, which ends with the test. It is built without the race detector, which would watch
// a server in this process, too: for long tests of what is on this side of the line.
func Apart(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	program := filepath.Join(dir, "serve")
	build := exec.CommandContext(tb.Context(), "go", "build", "-o", program, "github.com/mortise-dev/mortise/store/natsstore/internal/servertest/serve")
	if out, err := build.CombinedOutput(); err != nil {
		tb.Fatalf("build a server: %v\n%s", err, out)
	}
	serve := exec.Command(program, filepath.Join(dir, "data")) //nolint:noctx // it ends when its input does
	serve.Stderr = os.Stderr
	in, err := serve.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := serve.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := serve.Start(); err != nil {
		tb.Fatal(err)
	}
	url, err := bufio.NewReader(out).ReadString('\n')
	tb.Cleanup(func() {
		_ = in.Close() // what matters is how it ends
		if err := serve.Wait(); err != nil {
			tb.Errorf("the server: %v", err)
		}
	})
	if err != nil {
		tb.Fatalf("the server said %q: %v", url, err)
	}
	return strings.TrimSpace(url)
}
