package runcmd

import (
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/cli/livecmd"
	"github.com/mortise-dev/mortise/internal/cli/replaycmd"
)

const runLong = `Run an agent on a prompt, or replay a recorded session. An argument that is a file, or
looks like the path of one, is a recording; everything else is a prompt. - reads
either from standard input: JSON is a recording.

PROMPT runs the agent of the config as mortise serve does, without serving. Without a
mortise.yaml it takes the model of ANTHROPIC_API_KEY or OPENAI_API_KEY (and
ANTHROPIC_BASE_URL or OPENAI_BASE_URL) and the bundled compaction policies. The
answer goes to standard output as it comes; calls of tools, compactions and
questions go to standard error. On a terminal you are asked about calls that need an
approval; elsewhere they are denied, unless --approve always. With a store the
thread is kept, and --thread continues it. Ctrl-C ends the run; a second one ends
the process.

SESSION replays: the user, the model and the tools say what they said then; phases
fire, plugins run, and compaction happens in the background, as they would live. At the end
a report says who did what. The format is found by content: pi and Claude Code
sessions, message lists of OpenAI, Anthropic, the AI SDK and Bedrock, mini-swe-agent,
tau-bench, BFCL memory, QMSum. A file with several conversations is replayed one after
the other. Progress goes to standard error, the report to standard output. What each
plugin decided is kept in a SQLite file of the user's own; mortise explain RUN prints it.

--store keeps messages, compactions and decisions in one SQLite file, on NATS
(nats://HOST:4222/NAME?replicas=3) or in PostgreSQL
(postgres://USER@HOST/DATABASE?sslmode=verify-full&schema=NAME), which mortise
compact show, compact undo and explain read. Passwords can be in the environment
(PGPASSWORD) or a password file, as for every client of PostgreSQL. A replayed conversation
that is there already continues: what the recording has more is played.

In a replay whose standard error is not a terminal, SIGHUP swaps the modules whose files have
changed, while the run continues; one that cannot take over is refused, and one
that fails afterwards is rolled back. A SIGHUP that arrives while modules are
loaded waits for that. The config is not read again. On a terminal SIGHUP means
that the terminal is gone: the run ends as at Ctrl-C.

Exit codes: 0 done, 1 a run failed, and of a prompt also: was stopped or blocked
(with --strict also a plugin or policy failed, or a plugin blocked a replayed run,
which the report names), 2 wrong command line or nothing of that name, 3 wrong
config or no model, 4 unreadable session, 5 a module failed to load, 130 interrupted
(the report is partial).`

// New makes mortise run.
func New(s command.Streams) *cobra.Command {
	var o replaycmd.Options
	var l livecmd.Options
	cmd := &cobra.Command{
		Use:   "run PROMPT|SESSION",
		Short: "Run an agent on a prompt, or replay a recorded session",
		Long:  runLong,
		Example: `  mortise run "What is a write-ahead log?"
  mortise run --store mortise.db --thread t1 "And how do I fix it?"
  mortise run --config examples/mortise.yaml examples/sessions/review.jsonl
  mortise run --output json session.jsonl > report.json`,
		Args: command.TakesOne("PROMPT or SESSION", "put a prompt in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			o.PaceSet, o.Session, o.LogSet = f.Changed("pace"), args[0], f.Changed("log-level")
			l.Config, l.Store, l.Quiet, l.LogSet, l.LogLevel = o.Config, o.Store, o.Quiet, o.LogSet, o.LogLevel
			return runEither(cmd, s, l, o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&l.Thread, "thread", "", "prompt: continue this thread of the store")
	f.StringVar(&l.Agent, "agent", "", "prompt: an agent of the config (default default_agent)")
	f.StringVar(&l.Model, "model", "", "prompt: a model of the config, or the provider's name of another one")
	f.StringVar(&l.Approve, "approve", "", "prompt: ask, always or never allow calls that need an approval (default ask on a terminal, else never)")
	f.BoolVar(&l.JSON, "json", false, "prompt: print the events of the run as lines of JSON, as docs/http.md has them")
	command.ConfigFlag(f, &o.Config, "")
	command.OutputFlag(f, &o.Output, "report as table or json")
	f.StringVar(&o.Conversation, "conversation", "", "replay only the conversation with this id")
	command.LevelFlag(f, &o.LogLevel, slog.LevelWarn)
	f.DurationVar(&o.Pace, "pace", 0, "how long each recorded inference takes (overrides the config)")
	f.BoolVar(&o.Lenient, "lenient", false, "leave out lines that cannot be read, and list them")
	f.StringVar(&o.RecordStore, "record-store", "", "keep decision records in this SQLite file, or at this nats:// or postgres:// URL (overrides MORTISE_RECORD_STORE and the config)")
	f.BoolVar(&o.NoRecord, "no-record", false, "keep no decision records")
	f.StringVar(&o.Store, "store", "", "keep messages, compactions and decision records in this SQLite file, or at this nats:// or postgres:// URL (overrides store of the config)")
	f.BoolVar(&o.Strict, "strict", false, "exit with 1 when a plugin or policy failed, replied something that was refused, or blocked a run")
	f.BoolVarP(&o.Quiet, "quiet", "q", false, "no progress, and no log without --log-level")
	return cmd
}

// runEither is mortise run.
func runEither(cmd *cobra.Command, s command.Streams, l livecmd.Options, o replaycmd.Options) error {
	as, err := useOf(cmd.Flags())
	if err != nil {
		return err
	}
	prompt, in, live, err := promptOf(s.In, o.Session, as)
	switch {
	case err != nil:
		return err
	case live:
		return livecmd.Run(cmd.Context(), s, prompt, l)
	}
	s.In = in
	return replaycmd.Run(cmd.Context(), s, o)
}
