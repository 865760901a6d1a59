package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// config is the mortise.yaml of the server.
const config = `version: 1
models:
  main: {provider: scripted, name: script, base_url: "$URL"}
agents:
  auditor: {model: main, system_prompt: You read documents., plugins: [guard, redact, index]}
mcp:
  - {name: files, command: ["$SELF"], env: {MORTISE_EXAMPLE_ROOT: "$ROOT"}, required: true}
plugins:
  - {name: guard, module: $ROOT/testdata/guests/guard.wasm}
  - {name: redact, module: $ROOT/testdata/guests/redact.wasm}
  - {name: index, module: $ROOT/testdata/guests/index.wasm}
compaction:
  window_tokens: 24000
  threshold_tokens: 4000
  keep_recent_tokens: 1200
  summary_tokens: 1200
  summarizer: {module: $ROOT/testdata/guests/summarizers.wasm, limits: {timeout: 30s}}
  admission: {policy: cost, limits: {timeout: 30s}, quota: {cooldown: 0s}}
limits: {timeout: 30s}
`

// server is mortise serve, in a process of its own.
type server struct {
	dir, api, admin string
	cmd             *exec.Cmd
	log             strings.Builder // its standard error; read it after the end
}

// start writes the config into a folder and starts the server with it.
func start(ctx context.Context, dir, root, modelURL string) (*server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	root, err = filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	text := strings.NewReplacer("$URL", modelURL, "$SELF", filepath.ToSlash(self), "$ROOT", filepath.ToSlash(root)).Replace(config)
	if err := os.WriteFile(filepath.Join(dir, "mortise.yaml"), []byte(text), 0o600); err != nil {
		return nil, err
	}
	s := &server{dir: dir, cmd: exec.CommandContext(ctx, self)} //nolint:gosec // this program
	args := []string{"serve", "--config", filepath.Join(dir, "mortise.yaml"), "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--log-level", "warn"}
	s.cmd.Env = append(os.Environ(), "MORTISE_STORE=", serverArgs+"="+strings.Join(args, "\n"))
	s.cmd.Stderr = &s.log
	s.cmd.Cancel, s.cmd.WaitDelay = func() error { return s.cmd.Process.Signal(os.Interrupt) }, 10*time.Second
	out, err := s.cmd.StdoutPipe()
	if err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, err
	}
	for lines := bufio.NewScanner(out); s.admin == "" && lines.Scan(); {
		switch name, url, _ := strings.Cut(lines.Text(), " "); name {
		case "api":
			s.api = url
		case "admin":
			s.admin = url
		}
	}
	if s.admin == "" {
		return nil, fmt.Errorf("mortise serve does not start: %w: %s", s.cmd.Wait(), s.log.String())
	}
	return s, nil
}

// stop ends the server as an operator does, and waits for it.
func (s *server) stop() error {
	if err := s.cmd.Process.Signal(os.Interrupt); err != nil {
		_ = s.cmd.Process.Kill() // a system without signals
	}
	if err := s.cmd.Wait(); err != nil {
		return fmt.Errorf("mortise serve: %w: %s", err, s.log.String())
	}
	return nil
}
