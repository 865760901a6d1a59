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
	}
	return nil
}

// trust has Codex trust the hooks, as install --trust does.
func (r *Rig) trust(ctx context.Context) error {
	if r.cfg.Untrusted {
		return nil
	}
	hooks, err := install.CodexHooks(ctx, r.cfg.Program, r.Project(), r.mark(), r.environment(), true)
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
	default:
		return append([]string{"-p", prompt, "--output-format", "json"}, more...)
	}
}

// environment of the agent: nothing of the user's but PATH.
func (r *Rig) environment() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.Home(), "TMPDIR=" + os.TempDir(), "LANG=C.UTF-8",
		"ANTHROPIC_BASE_URL=" + r.server.URL(), "ANTHROPIC_API_KEY=" + r.server.Key(), "ANTHROPIC_MODEL=" + anthropicModel,
		"ANTHROPIC_SMALL_FAST_MODEL=" + anthropicModel, "ANTHROPIC_DEFAULT_HAIKU_MODEL=" + anthropicModel,
		"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1", "CLAUDE_CODE_DISABLE_EXPERIMENTAL_BETAS=1", "IS_SANDBOX=1", "DISABLE_AUTOUPDATER=1",
		"LOCAL_KEY=" + r.server.Key(), "CODEX_HOME=" + filepath.Join(r.Home(), ".codex"), "MORTISE_HOOK_WAIT_MS=20000",
	}
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
