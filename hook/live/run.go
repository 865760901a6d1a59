package live

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook/install"
)

// Result is how a run of the agent ended.
type Result struct {
	Stdout, Stderr string
	Exit           int
}

// model of each agent, one that the fakes know.
const (
	anthropicModel = "claude-sonnet-4-5"
	openaiModel    = "gpt-5"
	chatModel      = "gpt-4.1"
)

// prepare writes what the agent needs besides its hooks.
func (r *Rig) prepare(ctx context.Context) error {
	switch r.dialect.Name {
	case "codex":
		config := fmt.Sprintf(`model = %q
model_provider = "local"
web_search = "disabled"
[model_providers.local]
name = "local"
base_url = %q
wire_api = "responses"
env_key = "LOCAL_KEY"
[agents]
enabled = false # no tools of kinds that the fake does not know
[features]
goals = false
tool_suggest = false
skill_search = false
image_generation = false
`, openaiModel, r.server.URL()+"/v1")
		if err := os.WriteFile(filepath.Join(filepath.Dir(r.File()), "config.toml"), []byte(config), 0o600); err != nil {
			return fmt.Errorf("live: %w", err)
		}
		return r.trust(ctx)
	case "pi":
		models := fmt.Sprintf(`{"providers":{"local":{"baseUrl":%q,"api":"openai-completions","apiKey":%q,"models":[{"id":%q}]}}}`, r.server.URL()+"/v1", r.server.Key(), chatModel)
		return os.WriteFile(filepath.Join(r.Home(), ".pi", "agent", "models.json"), []byte(models), 0o600)
	case "opencode":
		config := fmt.Sprintf(`{"model":"local/%[1]s","small_model":"local/%[1]s","autoupdate":false,"share":"disabled","provider":{"local":{"npm":"@ai-sdk/openai-compatible","options":{"baseURL":%[2]q,"apiKey":%[3]q},"models":{%[1]q:{}}}}}`,
			chatModel, r.server.URL()+"/v1", r.server.Key())
		return os.WriteFile(filepath.Join(r.Home(), ".config", "opencode", "opencode.json"), []byte(config), 0o600)
	}
	return nil
}

// trust has Codex trust the hooks, as install --trust does.
func (r *Rig) trust(ctx context.Context) error {
	if r.cfg.Untrusted {
		return nil
	}
	hooks, err := install.CodexHooks(ctx, r.cfg.Program, r.Project(), r.mark().MatchString, r.environment(), true)
	if err != nil {
		return err
	}
	for i := range hooks {
		if !hooks[i].Runs() {
			return fmt.Errorf("live: codex does not trust its hook of %s", hooks[i].Event)
		}
	}
	if len(hooks) == 0 {
		return errors.New("live: codex does not see its hooks")
	}
	return nil
}

// arguments of a run without a terminal. More are those of the caller.
func (r *Rig) arguments(prompt string, more []string) []string {
	switch r.dialect.Name {
	case "codex":
		return append(append([]string{"exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"}, more...), prompt)
	case "pi":
		return append([]string{"--offline", "--provider", "local", "--model", chatModel, "-p", prompt}, more...)
	case "qwen":
		return append([]string{"--auth-type", "openai", "--model", chatModel, "--yolo", "-p", prompt}, more...)
	case "opencode":
		return append([]string{"run", prompt}, more...)
	case "copilot":
		return append([]string{"-p", prompt, "--allow-all-tools", "--no-color"}, more...)
	default:
		return append([]string{"-p", prompt, "--output-format", "json"}, more...)
	}
}

// environment of the agent: nothing of the user's but PATH.
func (r *Rig) environment() []string {
	base := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + r.Home(), "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8", "MORTISE_HOOK_WAIT_MS=20000"}
	chat := r.server.URL() + "/v1"
	switch r.dialect.Name {
	case "qwen":
		return append(base, "OPENAI_BASE_URL="+chat, "OPENAI_API_KEY="+r.server.Key())
	case "copilot":
		return append(base, "COPILOT_OFFLINE=true", "COPILOT_PROVIDER_TYPE=openai", "COPILOT_PROVIDER_BASE_URL="+chat, "COPILOT_PROVIDER_API_KEY="+r.server.Key(), "COPILOT_MODEL="+chatModel)
	case "opencode":
		return append(base, "OPENCODE_DISABLE_AUTOUPDATE=1", "OPENCODE_DISABLE_MODELS_FETCH=1", "OPENCODE_DISABLE_LSP_DOWNLOAD=1")
	case "codex":
		return append(base, "LOCAL_KEY="+r.server.Key(), "CODEX_HOME="+filepath.Join(r.Home(), ".codex"))
	}
	return append(base,
		"ANTHROPIC_BASE_URL="+r.server.URL(), "ANTHROPIC_API_KEY="+r.server.Key(), "ANTHROPIC_MODEL="+anthropicModel,
		"ANTHROPIC_SMALL_FAST_MODEL="+anthropicModel, "ANTHROPIC_DEFAULT_HAIKU_MODEL="+anthropicModel,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS=1", "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1",
	)
}

// Runs reports whether a rig knows how to run an agent.
func Runs(dialect string) bool {
	switch dialect {
	case "claude", "codex", "pi", "qwen", "copilot", "opencode":
		return true
	default:
		return false
	}
}

// Shell is a call of an agent's shell, as its model makes it.
func Shell(dialect, id, command string) abi.ToolCall {
	c := abi.ToolCall{ID: id, Name: "Bash", Arguments: map[string]any{"command": command, "description": "a command"}}
	switch dialect {
	case "codex":
		c.Name, c.Arguments = "exec_command", map[string]any{"cmd": command}
	case "pi":
		c.Name, c.Arguments = "bash", map[string]any{"command": command}
	case "copilot", "opencode":
		c.Name = "bash"
	case "qwen", "gemini":
		c.Name, c.Arguments = "run_shell_command", map[string]any{"command": command, "is_background": false}
	}
	return c
}

// Run runs the agent once, without a terminal.
func (r *Rig) Run(ctx context.Context, prompt string, more ...string) (*Result, error) {
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.cfg.Program, r.arguments(prompt, more)...)
	var stdout, stderr bytes.Buffer
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr, cmd.WaitDelay = r.Project(), r.environment(), &stdout, &stderr, 5*time.Second
	err := cmd.Run()
	out := &Result{Stdout: stdout.String(), Stderr: stderr.String()}
	exit := (*exec.ExitError)(nil)
	if errors.As(err, &exit) {
		out.Exit, err = exit.ExitCode(), nil
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return out, err
}
