/** Every command: its usage line, its options, and where it lies. The CLI reference is made from this table. */
import type { Options } from 'yargs'
import type { Capability } from '../core/capabilities.ts'
import type { Command } from './command.ts'

export interface CommandEntry {
  usage: string
  describe: string
  /** What follows `--`, as the usage line shows it. */
  rest?: string
  /** Where the session meant lacks it, help and completion leave the command out. */
  needs?: Capability
  /**
   * `freeText`: the next word is the value, even if it begins with a dash; not if it is another option's name. `needs`: as
   * for the command.
   */
  options?: Record<string, Options & { positional?: boolean; freeText?: boolean; needs?: Capability }>
  examples?: [string, string][]
  load: () => Promise<Command>
}

const string = (describe: string): Options => ({ type: 'string', requiresArg: true, describe })
const boolean = (describe: string): Options => ({ type: 'boolean', describe })
const id = (describe: string) => ({ positional: true, describe })

const session = string('the session: its id, a unique prefix, or `latest`')
const conflicts = {
  merge: boolean('write conflict markers where both sides changed the same lines'),
  force: boolean('take the other state; the safety checkpoint keeps yours'),
  'skip-conflicts': boolean('leave conflicting paths as they are'),
}
const dryRun = boolean('print the plan, change nothing')
const withPrompts = boolean('the text of prompts too')
const yes = boolean('do not ask when files look like secrets')

export const commands: CommandEntry[] = [
  {
    usage: 'init',
    describe: 'make the store (a git worktree needs no init; a plain directory does)',
    options: {
      hooks: boolean('the git hooks too'),
      agent: { type: 'string', array: true, requiresArg: true, describe: 'have this agent tell of its turns, too' },
    },
    load: async () => (await import('./commands/init.ts')).default,
  },
  {
    usage: 'mark <event>',
    describe: 'record a marker: a prompt starts a turn, a step is done, a stop ends it',
    options: {
      event: id('prompt, step or stop'),
      session: { ...string("the agent's own session id, exactly"), demandOption: true },
      kind: string('prompt: prompt, command, shell or compaction'),
      parent: string('prompt: the session that this one was forked from'),
      agent: string('prompt: who works'),
      'message-id': string('the same id again is the same marker'),
      text: { ...string('prompt: its text'), freeText: true },
      start: boolean('step: a tool call is about to begin'),
      tool: string('step: the tool'),
      path: { type: 'string', array: true, requiresArg: true, describe: 'step: a path that the tool changes' },
      'call-id': string('step: the tool call'),
      status: string('stop: completed, interrupted or failed'),
      marker: string('made by the client: a retry carries it again'),
    },
    examples: [
      ['ckpt mark prompt --session chat-1 --text "Add a login page"', 'a turn starts'],
      ['ckpt mark stop --session chat-1', 'it ends'],
    ],
    load: async () => (await import('./commands/mark.ts')).default,
  },
  {
    usage: 'agent <action> [name]',
    describe: 'have an agent tell ckpt of its turns: install, uninstall or status',
    options: {
      action: id('install, uninstall or status'),
      name: id('claude, codex, opencode, gemini or cursor'),
      scope: string('user (the default), project, or local'),
      all: boolean('every agent that is on this machine'),
      'dry-run': dryRun,
      yes: { ...boolean('do not ask'), alias: 'y' },
    },
    examples: [['ckpt agent install claude', 'every turn of Claude Code is a checkpoint']],
    load: async () => (await import('./commands/agent.ts')).default,
  },
  {
    usage: 'hook <name> [event]',
    describe: 'what an agent calls: its payload on standard input; always exits 0',
    options: {
      name: id('claude, codex, opencode, gemini or cursor'),
      event: id('the event, where the payload lacks it'),
    },
    load: async () => (await import('./commands/hook.ts')).default,
  },
  {
    usage: 'run',
    rest: '-- COMMAND…',
    describe: 'run a command as one turn',
    options: {
      session: string('the session (run by default)'),
      text: { ...string('what to call the turn (the command line by default)'), freeText: true },
      commit: { ...boolean('commit afterwards where the configuration says so (--no-commit)'), default: true },
      checkpoints: { type: 'boolean', default: true, describe: 'record the turn (--no-checkpoints)' },
    },
    examples: [['ckpt run -- npm run codemod', 'undo it with ckpt undo']],
    load: async () => (await import('./commands/run.ts')).default,
  },
  {
    usage: 'snapshot',
    describe: 'take a checkpoint by hand, in session `manual`',
    options: { message: { ...string('what to call it'), alias: 'm', freeText: true } },
    load: async () => (await import('./commands/snapshot.ts')).default,
  },
  {
    usage: 'list',
    describe: 'list turns, newest first',
    options: {
      session,
      sessions: boolean('list sessions instead'),
      hidden: boolean('undone turns too'),
      abandoned: boolean('abandoned turns too'),
      'all-sessions': boolean('turns of every session'),
      'all-worktrees': boolean('sessions of every worktree of the repository'),
      limit: { ...string('at most this many'), alias: 'n' },
    },
    load: async () => (await import('./commands/list.ts')).default,
  },
  {
    usage: 'show <id>',
    describe: 'one turn or checkpoint: prompt, steps, files, coverage',
    options: { id: id('a turn (3), a step (3.2), 3:before, 3:after, or a checkpoint'), session },
    load: async () => (await import('./commands/show.ts')).default,
  },
  {
    usage: 'status',
    describe: 'where this worktree stands',
    load: async () => (await import('./commands/status.ts')).default,
  },
  {
    usage: 'diff [a] [b]',
    rest: '[-- PATH…]',
    describe: 'what a turn did (the last one by default), or what lies between two checkpoints',
    needs: 'supportsDiff',
    options: {
      a: id('a turn, a step, a checkpoint, or `worktree`'),
      b: id('the other side'),
      session,
      uncommitted: boolean('what is not committed: git diff HEAD'),
      stat: boolean('counts only'),
      'name-only': boolean('names only'),
      word: boolean('word by word'),
    },
    examples: [
      ['ckpt diff', 'what the last turn did'],
      ['ckpt diff 3 worktree -- src', 'from the end of turn 3 to now, below src'],
    ],
    load: async () => (await import('./commands/diff.ts')).default,
  },
  {
    usage: 'undo',
    rest: '[-- PATH…]',
    describe: 'take the last turn back; it stays hidden until the session goes on',
    needs: 'supportsUndo',
    options: {
      turns: string('how many turns (1)'),
      to: string('back to before this turn or step, or to this checkpoint'),
      step: { ...boolean('only the last step that changed something'), needs: 'supportsStepUndo' },
      only: { ...string('this turn alone, later ones stay'), needs: 'supportsSelectiveUndo' },
      session,
      ...conflicts,
      unclaimed: boolean('also what changed during the turn outside its steps'),
      interrupt: boolean('close a running turn as interrupted first'),
      'dry-run': dryRun,
    },
    examples: [
      ['ckpt undo', 'the last turn'],
      ['ckpt undo --to 3', 'turn 3 and all later ones'],
      ['ckpt undo -- src/app.ts', 'the last turn, this file only'],
    ],
    load: async () => (await import('./commands/undo.ts')).default,
  },
  {
    usage: 'redo',
    describe: 'bring the next undone turn back',
    needs: 'supportsRedo',
    options: {
      turns: string('how many turns (1)'),
      all: boolean('everything that is undone'),
      session,
      ...conflicts,
      'dry-run': dryRun,
    },
    load: async () => (await import('./commands/redo.ts')).default,
  },
  {
    usage: 'accept',
    describe: 'keep the undone state: hidden turns become abandoned',
    needs: 'supportsUndo',
    options: { session },
    load: async () => (await import('./commands/accept.ts')).default,
  },
  {
    usage: 'restore <id>',
    rest: '[-- PATH…]',
    describe: 'bring files of any checkpoint back',
    options: {
      id: id('a turn, a step, or a checkpoint'),
      session,
      exact: boolean('also delete what the checkpoint does not have'),
      force: boolean('over changes since the newest checkpoint too'),
      'dry-run': dryRun,
    },
    examples: [['ckpt restore 3 -- src/app.ts', 'one file as turn 3 left it']],
    load: async () => (await import('./commands/restore.ts')).default,
  },
  {
    usage: 'log',
    describe: 'the whole tree of turns, with its forks',
    options: { graph: boolean('draw it'), session },
    load: async () => (await import('./commands/log.ts')).default,
  },
  {
    usage: 'switch <id>',
    describe: "move the worktree to any branch of a session's tree, abandoned ones included; the session goes on there",
    needs: 'supportsFork',
    options: {
      id: id('a turn, a step, or a checkpoint'),
      session,
      force: boolean('over changes since the newest checkpoint too'),
      'dry-run': dryRun,
    },
    load: async () => (await import('./commands/switch.ts')).default,
  },
  {
    usage: 'rewind',
    describe: 'pick a turn from a list, see what would change, and go back to it',
    options: { session },
    load: async () => (await import('./commands/rewind.ts')).default,
  },
  {
    usage: 'prune',
    describe: 'remove abandoned turns past their grace, then what is over the limits',
    options: {
      'dry-run': dryRun,
      keep: string('visible turns to keep in each session'),
      'older-than': string('remove visible turns older than this (30d)'),
      'max-bytes': string('remove the oldest turns until the store is no larger (500MiB)'),
      idle: { ...boolean('for the daemon: only what goes by itself'), hidden: true },
    },
    load: async () => (await import('./commands/prune.ts')).default,
  },
  {
    usage: 'blame <file>',
    describe: 'which turn wrote each line, and what was asked for then',
    options: { file: id('a file of the worktree'), session },
    load: async () => (await import('./commands/blame.ts')).default,
  },
  {
    usage: 'bisect',
    describe: 'the first turn that makes a command fail: ckpt bisect -- COMMAND ...',
    options: { session },
    examples: [['ckpt bisect -- npm test', 'each state in a directory of its own; the worktree is not touched']],
    load: async () => (await import('./commands/bisect.ts')).default,
  },
  {
    usage: 'forget <path>',
    describe: 'remove a file from every checkpoint, and prove that it is gone; changes ids',
    options: { path: id('a file or directory of the worktree') },
    load: async () => (await import('./commands/forget.ts')).default,
  },
  {
    usage: 'apply <token>',
    describe: 'carry out exactly the plan that a dry run printed',
    options: { token: id('the token that a dry run printed') },
    load: async () => (await import('./commands/apply.ts')).default,
  },
  {
    usage: 'verify',
    describe: 'prove the store and its timeline',
    options: {
      pending: {
        type: 'boolean',
        default: true,
        describe: 'a pending revert boundary is fine (--no-pending: it is not)',
      },
      worktree: boolean('the files on disk are those of the newest checkpoint'),
      ref: string('a range of your commits (A..B): which of them recorded turns account for'),
      covered: boolean('with --ref: a commit that no turn accounts for is a problem'),
      bundle: string('this bundle too, read whole in a place of its own'),
      ci: boolean('annotations and a summary table for GitHub Actions or GitLab CI'),
    },
    examples: [
      ['ckpt verify --no-pending --worktree', 'nothing is undone, and nothing changed since the last checkpoint'],
      ['ckpt verify --ci --ref origin/main..HEAD', 'in CI: what agents did in this branch'],
    ],
    load: async () => (await import('./commands/verify.ts')).default,
  },
  {
    usage: 'export <file>',
    describe: 'write all checkpoints of this repository to a git bundle, without prompts',
    options: { file: id('the bundle to write'), 'with-prompts': withPrompts, yes },
    load: async () => (await import('./commands/export.ts')).default,
  },
  {
    usage: 'import <file>',
    describe: 'take in a bundle that `ckpt export` made; loses nothing that is here',
    options: { file: id('the bundle') },
    load: async () => (await import('./commands/import.ts')).default,
  },
  {
    usage: 'push <remote>',
    describe: 'send all checkpoints of this repository to refs/ckpt/ of a remote, without prompts',
    options: { remote: id('a remote, a URL or a directory'), 'with-prompts': withPrompts, yes },
    load: async () => (await import('./commands/push.ts')).default,
  },
  {
    usage: 'pull <remote>',
    describe: 'take in the checkpoints that others sent to a remote; loses nothing that is here',
    options: { remote: id('a remote, a URL or a directory') },
    load: async () => (await import('./commands/pull.ts')).default,
  },
  {
    usage: 'commit',
    describe: 'one clean commit of what the session changed, and nothing else',
    options: {
      message: { ...string('the message (made from the prompts by default)'), alias: 'm' },
      session,
    },
    load: async () => (await import('./commands/commit.ts')).default,
  },
  {
    usage: 'hooks <action>',
    describe: 'git hooks that refuse commits while something is undone',
    options: { action: id('install, uninstall or status') },
    examples: [
      ['ckpt hooks install', 'hooks that are there are kept, and run after the gate'],
      ['ckpt hooks status', 'has git run each of them, dry'],
    ],
    load: async () => (await import('./commands/hooks.ts')).default,
  },
  {
    usage: 'capabilities',
    describe: 'what a session can do',
    options: { session },
    load: async () => (await import('./commands/capabilities.ts')).default,
  },
  {
    usage: 'watch',
    describe: 'watch the worktree in the foreground: a live view, and fast checkpoints',
    options: { background: { ...boolean('for `ckpt daemon start`'), hidden: true } },
    load: async () => (await import('./commands/watch.ts')).default,
  },
  {
    usage: 'daemon <action>',
    describe: 'the watcher in the background: start, stop, status or logs',
    options: { action: id('start, stop, status or logs') },
    load: async () => (await import('./commands/daemon.ts')).default,
  },
  {
    usage: 'completion [shell]',
    describe: 'shell completion: eval "$(ckpt completion bash)", or zsh, or fish',
    options: {
      shell: id('bash, zsh or fish'),
      words: { ...boolean('the words that fit, for the shell'), hidden: true },
    },
    load: async () => (await import('./commands/completion.ts')).default,
  },
  {
    usage: 'doctor',
    describe: 'find what is wrong and say how to mend it; exits 7 if something of it is damaged',
    options: {
      fix: boolean('mend what is safe to mend'),
      'break-lock': boolean('remove a lock whose holder cannot be seen'),
    },
    load: async () => (await import('./commands/doctor.ts')).default,
  },
]
