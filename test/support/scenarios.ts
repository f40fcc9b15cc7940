/** What agents are told to do, and what has to come of it: for the runs that were recorded, and for the real clients. */
import type { Script } from './fake-model.ts'
import type { Json } from './scratch.ts'

export interface Scenario extends Script {
  prompts: string[]
  /** What each turn goes on with: nothing (a new conversation), the one before (the default), another, or a fork of it. */
  from?: ('new' | number | { fork: number })[]
  /** The first turn is interrupted once this file is there. */
  interruptAt?: string
}

/** What lies in the worktree. */
export const AT_FIRST = { 'old.txt': 'old\n' }

export const SCENARIOS: Record<string, Scenario> = {
  'two-turns': {
    prompts: [
      '[turn 1] Create hello.txt with your file tool, then made-by-bash.txt with the shell.',
      '[turn 2] Edit hello.txt, append to made-by-bash.txt, then run a failing command.',
    ],
    turns: [
      [
        { op: 'write', path: 'hello.txt', content: 'hello\nworld\n' },
        { op: 'bash', command: 'echo one > made-by-bash.txt' },
        { op: 'text', text: 'Turn one is done.' },
      ],
      [
        { op: 'read', path: 'hello.txt' },
        { op: 'edit', path: 'hello.txt', old: 'world\n', new: 'there\n' },
        { op: 'bash', command: 'echo two >> made-by-bash.txt' },
        { op: 'bash', command: 'echo partial > partial.txt; exit 3' },
        { op: 'text', text: 'Turn two is done.' },
      ],
    ],
  },
  files: {
    prompts: ['[turn 1] Create two files.', '[turn 2] Delete one of them, and move the other.'],
    turns: [
      [
        { op: 'write', path: 'gone.txt', content: 'gone\n' },
        { op: 'write', path: 'here.txt', content: 'here\n' },
        { op: 'text', text: 'Created.' },
      ],
      [
        { op: 'bash', command: 'rm gone.txt old.txt' },
        { op: 'bash', command: 'mkdir -p sub && mv here.txt sub/there.txt' },
        { op: 'text', text: 'Deleted and moved.' },
      ],
    ],
  },
  parallel: {
    prompts: ['[turn 1] Create two files at once.'],
    turns: [
      [
        [
          { op: 'write', path: 'a.txt', content: 'a\n' },
          { op: 'write', path: 'b.txt', content: 'b\n' },
          { op: 'bash', command: 'sleep 0.3; echo c > c.txt' },
        ],
        { op: 'text', text: 'Three files.' },
      ],
    ],
  },
  subagent: {
    prompts: ['[turn 1] Let a subagent write sub.txt, then write main.txt.'],
    turns: [
      [
        { op: 'agent', prompt: '[sub 1] write sub.txt' },
        { op: 'write', path: 'main.txt', content: 'main\n' },
        { op: 'text', text: 'Both written.' },
      ],
    ],
    subs: [
      [
        { op: 'write', path: 'sub.txt', content: 'sub\n' },
        { op: 'text', text: 'sub done' },
      ],
    ],
  },
  background: {
    prompts: [
      '[turn 1] Let a subagent write sub.txt while you go on, then write follow.txt.',
      '[turn 2] Write two.txt.',
    ],
    turns: [
      [
        { op: 'agent', prompt: '[sub 1] take your time, then write sub.txt' },
        { op: 'text', text: 'It works on it.' },
        { op: 'write', path: 'follow.txt', content: 'follow\n' },
        { op: 'bash', command: 'echo by-shell > follow-by-shell.txt' },
        { op: 'text', text: 'Followed up.' },
      ],
      [
        { op: 'write', path: 'two.txt', content: 'two\n' },
        { op: 'text', text: 'Two.' },
      ],
    ],
    subs: [
      [
        { op: 'bash', command: 'sleep 1; echo sub > sub-by-shell.txt' },
        { op: 'write', path: 'sub.txt', content: 'sub\n' },
        { op: 'text', text: 'sub done' },
      ],
    ],
  },
  cwd: {
    prompts: ['[turn 1] Change directory in the shell, then write again.', '[turn 2] One more file.'],
    turns: [
      [
        { op: 'bash', command: 'mkdir -p sub && cd sub && echo x > x.txt' },
        { op: 'bash', command: 'echo y > y.txt; pwd' },
        { op: 'write', path: 'top.txt', content: 'top\n' },
        { op: 'text', text: 'Moved.' },
      ],
      [
        { op: 'write', path: 'two.txt', content: 'two\n' },
        { op: 'text', text: 'Two.' },
      ],
    ],
  },
  'api-error': {
    prompts: ['[turn 1] Write one file, then the API fails.'],
    turns: [
      [
        { op: 'write', path: 'half.txt', content: 'half\n' },
        { op: 'error', status: 400 },
      ],
    ],
  },
  interrupt: {
    prompts: ['[turn 1] Write early.txt, then run something slow (to be interrupted).', '[turn 2] Write after.txt.'],
    turns: [
      [
        { op: 'write', path: 'early.txt', content: 'early\n' },
        { op: 'bash', command: 'echo started > started.txt; sleep 25; echo late > late.txt' },
        { op: 'text', text: 'Not reached.' },
      ],
      [
        { op: 'write', path: 'after.txt', content: 'after\n' },
        { op: 'text', text: 'After done.' },
      ],
    ],
    interruptAt: 'started.txt',
  },
  resume: {
    prompts: ['[turn 1] Write one.txt.', '[turn 2] Write two.txt.', '[turn 3] Write three.txt.'],
    from: ['new', 'new', 1],
    turns: ['one', 'two', 'three'].map((name) => [
      { op: 'write', path: `${name}.txt`, content: `${name}\n` },
      { op: 'text', text: 'Done.' },
    ]),
  },
  fork: {
    prompts: ['[turn 1] Write one.txt.', '[turn 2] Write two.txt.'],
    from: ['new', { fork: 1 }],
    turns: ['one', 'two'].map((name) => [
      { op: 'write', path: `${name}.txt`, content: `${name}\n` },
      { op: 'text', text: 'Done.' },
    ]),
  },
}

export interface Expected {
  status: string
  /** Tools of the steps, in order. */
  steps: string[]
  unclaimed?: string[]
}

const done = (...steps: string[]): Expected => ({ status: 'completed', steps })
const interrupted = (...steps: string[]): Expected => ({ status: 'interrupted', steps })
const failed = (...steps: string[]): Expected => ({ status: 'failed', steps })
const cut = (...steps: string[]): Expected => ({ ...interrupted(...steps), unclaimed: ['started.txt'] })

export interface Row {
  agent: string
  scenario: string
  turns: Expected[]
  /** What undo needs to be told. */
  undo?: string[]
  /** The agent does not say what a conversation was forked from. */
  untold?: true
}

const row = (agent: string, scenario: string, turns: Expected[]): Row => ({ agent, scenario, turns })

/** In each session, in order, as the sessions began. */
export const TABLE: Row[] = [
  row('claude', 'two-turns', [done('Write', 'Bash'), done('Edit', 'Bash', 'Bash')]),
  row('claude', 'files', [done('Write', 'Write'), done('Bash', 'Bash')]),
  row('claude', 'parallel', [done('Write', 'Write', 'Bash')]),
  row('claude', 'subagent', [done('Write', 'Write')]),
  row('claude', 'background', [done('Bash', 'Write', 'Write', 'Bash'), done('Write')]),
  row('claude', 'cwd', [done('Bash', 'Bash', 'Write'), done('Write')]),
  row('claude', 'api-error', [failed('Write')]),
  { ...row('claude', 'interrupt', [cut('Write', 'Bash'), done('Write')]), undo: ['--unclaimed'] },
  row('claude', 'resume', [done('Write'), done('Write'), done('Write')]),
  row('claude', 'fork', [done('Write'), done('Write')]),
  row('codex', 'two-turns', [done('apply_patch', 'Bash'), done('Bash', 'apply_patch', 'Bash', 'Bash')]),
  row('codex', 'files', [done('apply_patch', 'apply_patch'), done('Bash', 'Bash')]),
  row('codex', 'parallel', [done('apply_patch', 'apply_patch', 'Bash')]),
  row('codex', 'subagent', [done('Bash', 'apply_patch')]),
  row('codex', 'cwd', [done('Bash', 'Bash', 'apply_patch'), done('apply_patch')]),
  row('codex', 'api-error', [interrupted('apply_patch')]),
  { ...row('codex', 'interrupt', [cut('apply_patch', 'Bash'), done('apply_patch')]), undo: ['--unclaimed'] },
  row('codex', 'resume', [done('apply_patch'), done('apply_patch'), done('apply_patch')]),
  row('gemini', 'two-turns', [
    done('write_file', 'run_shell_command'),
    done('replace', 'run_shell_command', 'run_shell_command'),
  ]),
  row('gemini', 'files', [done('write_file', 'write_file'), done('run_shell_command', 'run_shell_command')]),
  row('gemini', 'parallel', [done('write_file', 'write_file', 'run_shell_command')]),
  row('gemini', 'subagent', [done('run_shell_command', 'write_file')]),
  row('gemini', 'cwd', [done('run_shell_command', 'run_shell_command', 'write_file'), done('write_file')]),
  // Nothing tells of the error: the next prompt will.
  { ...row('gemini', 'api-error', [{ status: 'running', steps: ['write_file'] }]), undo: ['--interrupt'] },
  row('gemini', 'interrupt', [interrupted('write_file', 'run_shell_command'), done('write_file')]),
  row('gemini', 'resume', [done('write_file'), done('write_file'), done('write_file')]),
  row('opencode', 'two-turns', [done('write', 'bash'), done('edit', 'bash', 'bash')]),
  row('opencode', 'files', [done('write', 'write'), done('bash', 'bash')]),
  row('opencode', 'parallel', [done('write', 'write', 'bash')]),
  row('opencode', 'subagent', [done('write', 'write')]),
  row('opencode', 'cwd', [done('bash', 'bash', 'write'), done('write')]),
  row('opencode', 'api-error', [failed('write')]),
  { ...row('opencode', 'interrupt', [cut('write', 'bash'), done('write')]), undo: ['--unclaimed'] },
  row('opencode', 'resume', [done('write'), done('write'), done('write')]),
  { ...row('opencode', 'fork', [done('write'), done('write')]), untold: true },
]

/** Which turn (from 0) begins as a fork of which turn's conversation. */
export const forksIn = ({ from = [] }: Pick<Scenario, 'from'>): [number, number][] =>
  from.flatMap((one, i) => (typeof one === 'object' ? [[i, one.fork - 1] as [number, number]] : []))

/** Turns of several sessions, oldest first. */
export const inOrder = (turns: readonly Json[]): Json[] =>
  turns.toSorted((a, b) => (a.startedAt < b.startedAt ? -1 : a.startedAt > b.startedAt ? 1 : a.n - b.n))
