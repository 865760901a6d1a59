package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/llm/transcript"
)

// runOptions are the flags of mortise run.
type runOptions struct {
	config       string
	output       string
	conversation string
	logLevel     slog.Level
	pace         time.Duration
	paceSet      bool
	lenient      bool
	quiet        bool
	logSet       bool
	strict       bool
	session      string
	recordStore  string
	noRecord     bool
	store        string

	// The rest is for prompts.
	thread  string
	agent   string
	model   string
	approve string
	json    bool
}

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

Exit codes: 0 done, 1 a run failed or was stopped (with --strict also a plugin or
policy), 2 wrong command line or nothing of that name, 3 wrong config or no model, 4
unreadable session, 5 a module failed to load, 130 interrupted (the report is partial).`

func newRun(s Streams) *cobra.Command {
	var o runOptions
	cmd := &cobra.Command{
		Use:   "run PROMPT|SESSION",
		Short: "Run an agent on a prompt, or replay a recorded session",
		Long:  runLong,
		Example: `  mortise run "What is a write-ahead log?"
  mortise run --store mortise.db --thread t1 "And how do I fix it?"
  mortise run --config examples/mortise.yaml examples/sessions/review.jsonl
  mortise run --output json session.jsonl > report.json`,
		Args: takesOne("PROMPT or SESSION", "put a prompt in quotes"),
		RunE: func(cmd *cobra.Command, args []string) error {
			f := cmd.Flags()
			o.paceSet, o.session, o.logSet = f.Changed("pace"), args[0], f.Changed("log-level")
			return runEither(cmd, s, args[0], o)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.thread, "thread", "", "prompt: continue this thread of the store")
	f.StringVar(&o.agent, "agent", "", "prompt: an agent of the config (default default_agent)")
	f.StringVar(&o.model, "model", "", "prompt: a model of the config, or the provider's name of another one")
	f.StringVar(&o.approve, "approve", "", "prompt: ask, always or never allow calls that need an approval (default ask on a terminal, else never)")
	f.BoolVar(&o.json, "json", false, "prompt: print the events of the run as lines of JSON, as docs/http.md has them")
	configFlag(f, &o.config, "")
	outputFlag(f, &o.output, "report as table or json")
	f.StringVar(&o.conversation, "conversation", "", "replay only the conversation with this id")
	levelFlag(f, &o.logLevel, slog.LevelWarn)
	f.DurationVar(&o.pace, "pace", 0, "how long each recorded inference takes (overrides the config)")
	f.BoolVar(&o.lenient, "lenient", false, "leave out lines that cannot be read, and list them")
	f.StringVar(&o.recordStore, "record-store", "", "keep decision records in this SQLite file, or at this nats:// or postgres:// URL (overrides MORTISE_RECORD_STORE and the config)")
	f.BoolVar(&o.noRecord, "no-record", false, "keep no decision records")
	f.StringVar(&o.store, "store", "", "keep messages, compactions and decision records in this SQLite file, or at this nats:// or postgres:// URL (overrides store of the config)")
	f.BoolVar(&o.strict, "strict", false, "exit with 1 when a plugin or policy failed, or replied something that was refused")
	f.BoolVarP(&o.quiet, "quiet", "q", false, "no progress, and no log without --log-level")
	return cmd
}

// runEither is mortise run.
func runEither(cmd *cobra.Command, s Streams, arg string, o runOptions) error {
	as, err := useOf(cmd.Flags())
	if err != nil {
		return err
	}
	prompt, in, live, err := promptOf(s.In, arg, as)
	switch {
	case err != nil:
		return err
	case live:
		return runLive(cmd.Context(), s, prompt, o)
	}
	s.In = in
	return runSession(cmd.Context(), s, arg, o)
}

// runSession is mortise run SESSION.
func runSession(ctx context.Context, s Streams, path string, o runOptions) error {
	start := time.Now()
	cfg, err := s.links.loadOrBundled(o.config)
	if err != nil {
		return with(ExitConfig, err)
	}
	if err := cfg.chooseStore(o); err != nil {
		return err
	}
	if o.paceSet {
		cfg.Replay.Pace = Duration(o.pace)
	}
	file, err := readSession(s.In, path, o)
	if err != nil {
		return with(ExitSession, err)
	}
	p := newProgress(s.Err, o.quiet)
	c := newCollector()
	c.session(path, file)
	logger := slog.New(slog.NewTextHandler(o.logWriter(p, s.Err), &slog.HandlerOptions{Level: o.logLevel}))
	if cfg.home, err = cfg.openHome(ctx, logger); err != nil {
		return with(ExitConfig, err)
	}
	c.records, err = newRecorder(ctx, o, cfg, logger, func(err error) { p.say("the decision record is not complete: %v", err) })
	if err != nil {
		return with(ExitConfig, errors.Join(err, cfg.home.close(ctx)))
	}
	failure := replayFile(ctx, cfg, file, logger, p, c, s.hangups)
	c.records.note(errors.Join(c.records.close(ctx), cfg.home.close(ctx)))
	p.close()
	return finish(ctx, s, o, c.done(), start, failure)
}

// finish writes the report, and returns the error with which the command ends.
func finish(ctx context.Context, s Streams, o runOptions, report *Report, start time.Time, failure error) error {
	report.WallMS = time.Since(start).Milliseconds()
	report.Interrupted = ctx.Err() != nil
	if failure != nil {
		report.Error = worded(failure)
	}
	report.judge()
	if n := report.Verdict.Faults; failure == nil && o.strict && n > 0 {
		failure = with(ExitRun, fmt.Errorf("--strict: %s of plugins or policies, the first: %s", counted(n, "fault"), report.firstFault()))
	}
	if report.Interrupted {
		failure = &coded{ExitInterrupted, errors.New("interrupted; the report is partial")}
	}
	report.Verdict.end(codeOf(failure))
	if err := report.write(s.Out, o.output); err != nil {
		return with(ExitRun, fmt.Errorf("report: %w", err))
	}
	return failure
}

// logWriter is where the log goes: past the progress, when that is quiet and the level was asked for.
func (o runOptions) logWriter(p *progress, stderr io.Writer) io.Writer {
	if o.quiet && o.logSet {
		return stderr
	}
	return p.writer()
}

// readSession reads the recording and picks a conversation if one is named.
func readSession(in io.Reader, path string, o runOptions) (*transcript.File, error) {
	options := transcript.Options{Lenient: o.lenient}
	var file *transcript.File
	var err error
	if path == "-" {
		file, err = transcript.Read(in, options)
	} else {
		file, err = transcript.Open(path, options)
	}
	if err != nil {
		hint := ""
		var line *transcript.LineError
		switch info, failed := os.Stat(path); {
		case errors.As(err, &line) && !o.lenient:
			hint = "; --lenient leaves broken lines out"
		case errors.Is(err, os.ErrNotExist):
			hint = "; check the path; a prompt that looks like one can come from standard input: mortise run -"
		case failed == nil && info.IsDir():
			hint = "; name a file in this folder"
		}
		err = fmt.Errorf("session %s: %w%s", path, err, hint)
		if errors.Is(err, os.ErrNotExist) {
			return nil, notFound(err)
		}
		return nil, err
	}
	if o.conversation == "" {
		return file, nil
	}
	var ids []string
	for i := range file.Conversations {
		if file.Conversations[i].ID == o.conversation {
			file.Conversations = file.Conversations[i : i+1]
			return file, nil
		}
		ids = append(ids, file.Conversations[i].ID)
	}
	return nil, notFound(fmt.Errorf("session %s: holds no conversation %q; it holds %s",
		path, o.conversation, clip(strings.Join(ids, ", "), 400)))
}

// replayFile loads what the config names and replays every conversation. Modules are
// swapped at hangups.
func replayFile(
	ctx context.Context, cfg *Config, file *transcript.File, logger *slog.Logger, p *progress, c *collector, hangups <-chan os.Signal,
) error {
	parts, err := assemble(ctx, cfg, logger, p, c)
	var failures []error
	if err == nil {
		reloads := &reloader{parts: parts, hangups: hangups, out: p, note: c.reloaded, asked: c.reloadAsked}
		stop := reloads.watch(ctx)
		for i := range file.Conversations {
			if ctx.Err() != nil {
				break
			}
			failures = append(failures, replayConversation(ctx, parts, file.Conversations[i], logger, p, c))
		}
		stop()
		err = errors.Join(failures...)
		if known := (*coded)(nil); !errors.As(err, &known) {
			err = with(ExitRun, err)
		}
	}
	c.modules(parts.status())
	c.guests(parts.guests())
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if closeErr := parts.close(closing); closeErr != nil {
		logger.WarnContext(ctx, "modules did not close in time", "error", closeErr)
	}
	return err
}

// closeTimeout bounds the end of a command.
const closeTimeout = 10 * time.Second
