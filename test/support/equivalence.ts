/** One story told in several ways: each call of the library with the command line that does the same. */
import { execFileSync } from 'node:child_process'
import type { CkptError } from '../../src/core/errors.ts'
import type { WorktreeFunctions } from '../../src/library/facade.ts'
import { type Json, Scratch } from './scratch.ts'

export interface Case {
  name: string
  /** The edits made before it. */
  edit?: (scratch: Scratch) => void
  cli: (ckpt: (...args: string[]) => Json, scratch: Scratch) => Json
  call: (worktree: WorktreeFunctions) => Promise<unknown>
}

const line =
  (...args: string[]) =>
  (ckpt: (...args: string[]) => Json) =>
    ckpt(...args)

/** What a front end is told of a session, out of several commands. */
function sessionInfo(ckpt: (...args: string[]) => Json, session: string) {
  const { sessions } = ckpt('list', '--sessions')
  const found = sessions.find((one: Json) => one.id === session)
  const { boundary } = found
  const turns = boundary ? ckpt('list', '--session', session, '--hidden').turns : []
  const hidden = turns.filter((turn: Json) => turn.hidden).reverse()
  const shown = boundary ? ckpt('show', String(boundary.turn), '--session', session).turn : null
  const step = shown?.steps.find((one: Json) => one.n === boundary?.step)
  return {
    ...found,
    revertMessageID: boundary?.messageId ?? null,
    revertPartID: step ? (step.messageId ?? step.n) : null,
    revertDiff: boundary ? ckpt('diff', boundary.baseline, 'worktree').patch : '',
    hiddenTurns: hidden,
    restoredPrompt: shown?.text ?? null,
  }
}

/** Every function of the library is in it. */
export const story: Case[] = [
  {
    name: 'capabilities of an unknown session',
    cli: line('capabilities', '--session', 'x'),
    call: (w) => w.sessions.capabilities('x'),
  },
  { name: 'nothing yet', cli: line('undo'), call: (w) => w.sessions.undo() },
  { name: 'no turns', cli: line('list'), call: (w) => w.turns() },
  {
    name: 'no step before a turn',
    cli: line('mark', 'step', '--session', 's'),
    call: (w) => w.mark({ event: 'step', session: 's' }),
  },
  {
    name: 'a prompt',
    cli: line('mark', 'prompt', '--session', 's', '--text', 'one\nmore', '--message-id', 'm1', '--agent', 'a'),
    call: (w) => w.mark({ event: 'prompt', session: 's', text: 'one\nmore', messageId: 'm1', agent: 'a' }),
  },
  { name: 'running', cli: line('undo'), call: (w) => w.sessions.undo() },
  {
    name: 'a step',
    edit: (scratch) => scratch.write({ 'a.txt': 'two\n', 'new.txt': 'new\n' }),
    cli: line(
      'mark',
      'step',
      '--session',
      's',
      '--tool',
      'edit',
      '--message-id',
      'p1',
      '--path',
      'a.txt',
      '--path',
      'new.txt',
    ),
    call: (w) => w.mark({ event: 'step', session: 's', tool: 'edit', messageId: 'p1', paths: ['a.txt', 'new.txt'] }),
  },
  {
    name: 'another step',
    edit: (scratch) => scratch.write({ 'a.txt': 'three\n' }),
    cli: line('mark', 'step', '--session', 's', '--message-id', 'p2'),
    call: (w) => w.mark({ event: 'step', session: 's', messageId: 'p2' }),
  },
  { name: 'a stop', cli: line('mark', 'stop', '--session', 's'), call: (w) => w.mark({ event: 'stop', session: 's' }) },
  {
    name: 'a second prompt',
    cli: line('mark', 'prompt', '--session', 's', '--text', 'two', '--message-id', 'm2'),
    call: (w) => w.mark({ event: 'prompt', session: 's', text: 'two', messageId: 'm2' }),
  },
  {
    name: 'its stop',
    edit: (scratch) => scratch.remove('new.txt'),
    cli: line('mark', 'stop', '--session', 's', '--status', 'failed'),
    call: (w) => w.mark({ event: 'stop', session: 's', status: 'failed' }),
  },
  {
    name: 'a bad marker',
    cli: line('mark', 'prompt', '--session', 'a\tb'),
    call: (w) => w.mark({ event: 'prompt', session: 'a\tb' }),
  },
  { name: 'turns', cli: line('list', '-n', '1'), call: (w) => w.turns({ limit: 1 }) },
  { name: 'a turn', cli: line('show', '1'), call: (w) => w.show('1') },
  { name: 'a checkpoint', cli: line('show', '2:after'), call: (w) => w.show('2:after') },
  { name: 'no such turn', cli: line('show', '9'), call: (w) => w.show('9') },
  { name: 'sessions', cli: (ckpt) => ckpt('list', '--sessions').sessions, call: (w) => w.sessions.list() },
  { name: 'what the last turn did', cli: line('diff'), call: (w) => w.snapshots.diff() },
  {
    name: 'between two',
    cli: line('diff', '1:before', 'worktree', '--', 'a.txt'),
    call: (w) => w.snapshots.diff('1:before', 'worktree', { paths: ['a.txt'] }),
  },
  {
    name: 'whole contents',
    cli: (ckpt, scratch) => {
      const { from, to, files, warnings } = ckpt('diff', '1')
      const at = (id: string, file: string) =>
        scratch.run(['diff', '--word', id]).code === 0 && contents(scratch, id, file)
      return {
        from,
        to,
        files: files.map((file: Json) => ({ ...file, before: at(from, file.path), after: at(to, file.path) })),
        warnings,
      }
    },
    call: (w) => w.snapshots.diffFull('1'),
  },
  {
    name: 'a plan',
    cli: line('undo', '--to', '1', '--dry-run'),
    call: (w) => w.sessions.undo({ to: '1', dryRun: true }),
  },
  { name: 'undo', cli: line('undo'), call: (w) => w.sessions.undo() },
  { name: 'what is undone', cli: (ckpt) => sessionInfo(ckpt, 's'), call: (w) => w.sessions.getSessionInfo() },
  { name: 'undo the last step', cli: line('undo', '--step'), call: (w) => w.sessions.undo({ step: true }) },
  {
    name: 'what is undone by steps',
    cli: (ckpt) => sessionInfo(ckpt, 's'),
    call: (w) => w.sessions.getSessionInfo('s'),
  },
  { name: 'pending', cli: line('undo', '--only', '1'), call: (w) => w.sessions.undo({ only: '1' }) },
  { name: 'redo', cli: line('redo'), call: (w) => w.sessions.redo() },
  { name: 'redo all', cli: line('redo', '--all'), call: (w) => w.sessions.unrevert() },
  { name: 'nothing to redo', cli: line('redo'), call: (w) => w.sessions.redo() },
  { name: 'revert to a message', cli: line('undo', '--to', '1'), call: (w) => w.sessions.revert('m1') },
  { name: 'forward to a message', cli: line('redo'), call: (w) => w.sessions.revert('m2') },
  { name: 'revert to a part', cli: line('undo', '--to', '1.2'), call: (w) => w.sessions.revert('m1', 'p2') },
  {
    name: 'conflict',
    edit: (scratch) => scratch.write({ 'a.txt': 'mine\n' }),
    cli: line('redo', '--all'),
    call: (w) => w.sessions.redo({ all: true }),
  },
  {
    name: 'around the conflict',
    cli: line('redo', '--all', '--skip-conflicts', '--dry-run'),
    call: (w) => w.sessions.redo({ all: true, conflicts: 'skip', dryRun: true }),
  },
  { name: 'keep it', cli: line('accept'), call: (w) => w.sessions.cleanupRevertedHistory() },
  {
    name: 'nothing to keep',
    cli: line('accept', '--session', 's'),
    call: (w) => w.sessions.cleanupRevertedHistory({ session: 's' }),
  },
  {
    name: 'with abandoned',
    cli: line('list', '--hidden', '--abandoned'),
    call: (w) => w.turns({ hidden: true, abandoned: true }),
  },
  {
    name: 'track',
    edit: (scratch) => scratch.write({ 'ü/b.txt': 'b\n' }),
    cli: line('snapshot', '-m', 'by hand'),
    call: (w) => w.snapshots.track({ message: 'by hand' }),
  },
  {
    name: 'patch',
    edit: (scratch) => scratch.write({ 'c.txt': 'c\n', 'ü/b.txt': 'bb\n' }),
    cli: (ckpt) => {
      const { from, files } = ckpt('diff', '1:before', 'worktree')
      return { from, files: files.map(({ path }: Json) => ({ path })) }
    },
    call: (w) => w.snapshots.patch('1:before'),
  },
  {
    name: 'what changed since is kept',
    cli: line('restore', '1:before', '--exact', '--', 'ü/b.txt'),
    call: (w) => w.snapshots.revert({ from: '1:before', files: [{ path: 'ü/b.txt' }] }),
  },
  {
    name: 'or not',
    cli: line('restore', '1:before', '--exact', '--force', '--', 'ü/b.txt', 'a.txt'),
    call: (w) =>
      w.snapshots.revert({ from: '1:before', files: [{ path: 'ü/b.txt' }, { path: 'a.txt' }] }, { force: true }),
  },
  {
    name: 'restore',
    cli: line('restore', '1.1', '--force', '--', 'a.txt'),
    call: (w) => w.snapshots.restore('1.1', { force: true, paths: ['a.txt'] }),
  },
  {
    name: 'restore nothing',
    cli: line('restore', '1', '--', 'none.txt'),
    call: (w) => w.snapshots.restore('1', { paths: ['none.txt'] }),
  },
  {
    name: 'a plan carried out',
    cli: (ckpt) => ckpt('apply', ckpt('undo', '--force', '--dry-run').token),
    call: async (w) => w.apply((await w.sessions.undo({ conflicts: 'force', dryRun: true })).token!),
  },
  { name: 'a stale plan', cli: line('apply', 'e30'), call: (w) => w.apply('e30') },
  { name: 'switch while pending', cli: line('switch', '2'), call: (w) => w.switchTo('2') },
  { name: 'all back', cli: line('redo', '--all'), call: (w) => w.sessions.unrevert() },
  { name: 'switch', cli: line('switch', '2', '--force'), call: (w) => w.switchTo('2', { force: true }) },
  {
    name: 'would clean',
    cli: line('prune', '--keep', '1', '--dry-run'),
    call: (w) => w.snapshots.cleanup({ keep: 1, dryRun: true }),
  },
  { name: 'clean', cli: line('prune', '--keep', '1'), call: (w) => w.snapshots.cleanup({ keep: 1 }) },
  { name: 'capabilities', cli: line('capabilities'), call: (w) => w.sessions.capabilities() },
  {
    name: 'no such session',
    cli: line('undo', '--session', 'nobody'),
    call: (w) => w.sessions.undo({ session: 'nobody' }),
  },
]

function contents(scratch: Scratch, id: string, file: string): string {
  try {
    return execFileSync('git', [`--git-dir=${scratch.at('.git/ckpt/store.git')}`, 'show', `${id}:${file}`], {
      encoding: 'utf8',
      stdio: 'pipe',
    })
  } catch {
    return '' // it is not in that tree
  }
}

/** A worktree for the story. */
export const stage = (name: string) => new Scratch(name).init({ 'a.txt': 'one\n', '.gitignore': 'out/\n' })

/** What differs from run to run, replaced: ids by the order in which they first come up. */
export class Steady {
  readonly #ids = new Map<string, string>()

  of(value: unknown): unknown {
    const text = JSON.stringify(value ?? null, (key, one: unknown) =>
      key === 'token'
        ? '<token>'
        : /^(ms|syncMs|bytesFreed)$/.test(key) && typeof one === 'number'
          ? 0
          : /^(mode|barrier)$/.test(key)
            ? '<how>'
            : one,
    )
    return JSON.parse(
      text
        .replace(/\d{4}-\d\d-\d\dT[\d:.]+Z/g, '<time>')
        .replace(/\bt?[0-9a-f]{12,40}\b/g, (id) => this.#ids.get(id) ?? this.#remember(id)),
    )
  }

  #remember(id: string): string {
    const name = `<id ${this.#ids.size}>`
    this.#ids.set(id, name)
    return name
  }
}

/** What came of a case by the command line. */
export function byCommand(scratch: Scratch, one: Case): unknown {
  let failed: Json = null
  const ckpt = (...args: string[]): Json => {
    const { code, document } = scratch.tryCkpt(...args)
    const { schemaVersion, ok, ...rest } = document
    // Hints name the line that was typed: a call has none.
    const { hints: _, ...error } = rest.error ?? {}
    if (code !== 0) failed = { exitCode: code, ...error, files: rest.files ?? null }
    return rest
  }
  const done = one.cli(ckpt, scratch)
  return failed ?? done
}

/** What came of a case by a call. */
export async function byCall(worktree: WorktreeFunctions, one: Case): Promise<unknown> {
  try {
    return await one.call(worktree)
  } catch (error) {
    const { code, exitCode, message, paths, detail } = error as CkptError
    return {
      exitCode,
      code,
      message,
      ...(paths?.length ? { paths } : {}),
      files: detail?.files ?? null,
    }
  }
}

/** Names of the functions that a story calls, as the methods are called. */
export async function called(cases: readonly Case[]): Promise<Set<string>> {
  const names = new Set<string>()
  const recorder = (prefix: string): unknown =>
    new Proxy(
      {},
      {
        get: (_, key: string) =>
          prefix === '' && (key === 'sessions' || key === 'snapshots')
            ? recorder(`${key}.`)
            : async () => {
                names.add(`${prefix}${key}`)
                return { token: '' }
              },
      },
    )
  for (const one of cases) await one.call(recorder('') as WorktreeFunctions)
  return names
}
