package install

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"slices"
	"time"
)

// TrustedHook is a hook as Codex sees it. Codex runs those that are trusted, or managed.
type TrustedHook struct {
	Key     string `json:"key"`
	Hash    string `json:"currentHash"`
	Event   string `json:"eventName"`
	Command string `json:"command"`
	Source  string `json:"sourcePath"`
	Enabled bool   `json:"enabled"`
	Trust   string `json:"trustStatus"`
}

// Runs reports whether Codex runs the hook.
func (h *TrustedHook) Runs() bool {
	return h.Enabled && (h.Trust == "trusted" || h.Trust == "managed")
}

// codexTime bounds a conversation with Codex, which starts slowly.
const codexTime = 60 * time.Second

// codex is a conversation with codex app-server.
type codex struct {
	in  io.WriteCloser
	out *bufio.Reader
	id  int
}

// CodexHooks asks Codex for the hooks of a folder whose command is one of ours. With trust it first has Codex
// trust them: Codex keeps the hash that it computed itself.
// Env is the environment of Codex, nil for that of this process.
func CodexHooks(ctx context.Context, program, folder string, ours func(command string) bool, env []string, trust bool) (hooks []TrustedHook, err error) {
	ctx, cancel := context.WithTimeout(ctx, codexTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, program, "app-server")
	cmd.Dir, cmd.Env, cmd.WaitDelay = folder, env, 2*time.Second
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("install: codex: %w", err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("install: codex: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("install: codex: %w", err)
	}
	defer func() {
		_ = in.Close()
		cancel()
		_ = cmd.Wait()
	}()
	c := &codex{in: in, out: bufio.NewReader(out)}
	if err := c.call("initialize", map[string]any{"clientInfo": map[string]any{"name": "mortise", "version": "1"}}, nil); err != nil {
		return nil, err
	}
	if err := c.send(map[string]any{"method": "initialized"}); err != nil {
		return nil, err
	}
	if hooks, err = c.list(folder, ours); err != nil || !trust {
		return hooks, err
	}
	state := map[string]any{}
	for _, h := range hooks {
		if !h.Runs() {
			state[h.Key] = map[string]any{"trusted_hash": h.Hash}
		}
	}
	if len(state) == 0 {
		return hooks, nil
	}
	edit := map[string]any{"keyPath": "hooks.state", "mergeStrategy": "upsert", "value": state}
	if err := c.call("config/batchWrite", map[string]any{"edits": []any{edit}, "reloadUserConfig": true}, nil); err != nil {
		return nil, err
	}
	return c.list(folder, ours)
}

func (c *codex) list(folder string, ours func(string) bool) ([]TrustedHook, error) {
	var answer struct {
		Data []struct {
			Hooks  []TrustedHook `json:"hooks"`
			Errors []struct {
				Message string `json:"message"`
				Path    string `json:"path"`
			} `json:"errors"`
		} `json:"data"`
	}
	if err := c.call("hooks/list", map[string]any{"cwds": []string{folder}}, &answer); err != nil {
		return nil, err
	}
	var out []TrustedHook
	for _, d := range answer.Data {
		for _, e := range d.Errors {
			return nil, fmt.Errorf("install: codex: %s: %s", e.Path, e.Message)
		}
		out = append(out, d.Hooks...)
	}
	return slices.DeleteFunc(out, func(h TrustedHook) bool { return !ours(h.Command) }), nil
}

func (c *codex) send(v any) error {
	data, err := json.Marshal(v)
	if err == nil {
		_, err = c.in.Write(append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("install: codex: %w", err)
	}
	return nil
}

// call sends a request and reads its answer; notifications before it are skipped.
func (c *codex) call(method string, params, result any) error {
	c.id++
	if err := c.send(map[string]any{"id": c.id, "method": method, "params": params}); err != nil {
		return err
	}
	for {
		line, err := c.out.ReadBytes('\n')
		if err != nil {
			return fmt.Errorf("install: codex %s: %w", method, err)
		}
		var answer struct {
			ID     *int            `json:"id"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Message string `json:"message"`
			} `json:"error"`
		}
		if json.Unmarshal(line, &answer) != nil || answer.ID == nil || *answer.ID != c.id {
			continue
		}
		if answer.Error != nil {
			return fmt.Errorf("install: codex %s: %w", method, errors.New(answer.Error.Message))
		}
		if result == nil {
			return nil
		}
		if err := json.Unmarshal(answer.Result, result); err != nil {
			return fmt.Errorf("install: codex %s: %w", method, err)
		}
		return nil
	}
}
