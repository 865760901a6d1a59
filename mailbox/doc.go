// Package mailbox dispatches runs durably. What is submitted to it is kept in a [store.Store] until a worker of this process or of another
// one has executed it, once at a time for each thread, however processes, networks and disks behave meanwhile.
//
// A thread has at most one claim. A claim is a lease with a token: its holder may write to the thread, and no other process. When its lease
// is over, another process may claim the thread, with a new token and a greater fence; what the former holder still writes is refused.
// Payloads of requests, messages and runs are bytes here.
//
// # Processes
//
// A [Mailbox] is the part of one process: it takes requests, and between [Mailbox.Start] and [Mailbox.Stop] it executes what is due,
// whichever process queued it. A program with a scheduler of its own calls [Mailbox.Poll] instead. It is notified of what others queue, and
// polls the store besides. A thread that fails, since its records are damaged or the store has trouble with it, is set aside for a while: it
// keeps neither the others nor a start back.
//
// # Events
//
// What a run sends is read from any number on with [Mailbox.Attach], in the process that executes it and, if the store has [store.Events], in any
// other. Events are added there in batches, in the background, by the holder of the claim alone. They are not the
// truth about a run, which is in its thread's log: the last ones before a crash may be missing. They are never reordered, and never come
// twice; when another process continues, its numbers are above all that were given before. The last event, [EventSettled], is made of the
// dispatch: of the processes that had it, only the one with the latest claim ends it. [Mailbox.Await] waits for the end in any process.
//
// # The code
//
// A request becomes a dispatch of a thread. It is queued, claimed, executed and settled; each of these is a transition: read the cells that a
// rule needs, apply the rule, write what it changed in one batch, or start again if another process came between.
//
//	what is kept         record.go status.go             Dispatch, Thread, Run, Message
//	                     cells.go batch.go               as cells and indexes of a store
//	a transition         transition.go                   read, rule, write; state is its answer
//	                     view.go memory.go               what is read, and what need not be read again
//	                     turn.go                         what a rule sees and changes
//	the rules            enqueue.go lease.go commit.go   a dispatch comes, is claimed, and its holder writes
//	                     settle.go interrupt.go          a claim ends, or loses the thread
//	                     control.go                      cancel, replay, discard, pause, describe
//	                     text.go errors.go clock.go      sizes and texts; refusals; the time by which leases count
//	queries              lookup.go list.go               one thread, dispatch or run; pages of many
//	a process            mailbox.go config.go            the Mailbox and its workers
//	                     lifecycle.go recover.go         start, stop, close; what former processes left
//	                     loop.go take.go admit.go        poll what is due, and claim it, within the limits of all processes
//	                     run.go renew.go job.go          an execution, its lease, and what a Runtime has of it
//	                     health.go observe.go            a store or a thread that fails; what observers receive
//	requests             request.go submit.go decide.go  in the foreground, in the background, in batches; decisions
//	                     steer.go command.go             to a run under way, here or in another process
//	                     operate.go                      what operators ask for
//	events               stream.go pump.go feed.go       of an execution; shared with other processes; for readers
//	what is old          collect.go retain.go drop.go    dispatches; threads, runs and messages; a thread at once
//
// The rules are functions of a turn and of nothing else: begin with turn.go, enqueue.go and lease.go. Package mailboxtest plays them against a
// model, and is the contract on each store; mailboxmetrics and mailboxtrace are observers; agentrun is the Runtime that executes agents.
//
// # Concurrency
//
// Everything is safe for concurrent use. Close a Mailbox when it is not needed any more, before its store.
//
// # Errors
//
// [ErrNotFound], [ErrExists], [ErrConflict], [ErrFull], [ErrBusy] and [ErrInvalid] refuse a change; nothing has changed then. [ErrTooLarge] is
// a request, or what a run writes, with more bytes than [Limits] allow; a run that writes too much is a dead letter. [ErrUnknownOutcome] is a
// change whose answer was lost: repeat it, with the same ids. Another error of the store comes back wrapped, and nothing has changed.
package mailbox
