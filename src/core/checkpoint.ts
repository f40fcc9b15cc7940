/**
 * The message of a checkpoint's commit: a subject and one paragraph of trailers that only ckpt writes. Values are
 * percent-encoded, so that no text from an agent can look like a trailer or break a line. Prompts are not in it.
 */
import { CkptError } from './errors.ts'
import { isOid, type Oid, type SessionId, type TurnNumber } from './ids.ts'

type CheckpointKind = 'before' | 'step' | 'after' | 'manual' | 'safety'
export type TurnStatus = 'running' | 'completed' | 'interrupted' | 'failed'
export type PromptKind = 'prompt' | 'command' | 'shell' | 'compaction'

export interface CheckpointMeta {
  kind: CheckpointKind
  session: SessionId
  /** Place in the worktree's order of all checkpoints, from 1. */
  seq: number
  /** What a tree cannot say: see beside.ts. */
  beside: Oid
  /** ISO 8601 UTC with milliseconds. */
  time: string
  turn?: TurnNumber
  step?: number
  /** A step's start marker: opens its window. */
  start?: boolean
  /** It came after its time. A step, or an end that was not waited for, then belongs to no turn: see isOutside. */
  late?: boolean
  /**
   * Taken from the agent's own record afterwards, by a person: the `seq` of the session's newest checkpoint that was not,
   * 0 when there is none.
   */
  imported?: number
  degraded?: boolean
  /** Hooks of git's were at work: they may have put changes away for that time. */
  amidHooks?: boolean
  messageId?: string
  /** Made by the client that sent the marker: a retry carries it again. */
  marker?: string
  agent?: string
  tool?: string
  /** Declared by the step, latin1 bytes. */
  paths?: string[]
  callId?: string
  status?: Exclude<TurnStatus, 'running'>
  /** The end was not reported: it is the state before the next prompt. */
  inferred?: boolean
  promptKind?: PromptKind
  parentSession?: string
  head?: Oid
  branch?: string
  /** Safety checkpoints: which operation asked (undo, redo, restore, …), and whether this is the state it left. */
  op?: string
  result?: boolean
  /** The boundary's record: see boundary.ts. */
  record?: Oid
  /** At a session's first prompt: the worktree had uncommitted changes. */
  dirty?: boolean
  /** An `after`: so many agents were at work in the background. */
  background?: number
  /** An `after` where the session went on from the middle of a turn whose later steps were undone: from `step` on. */
  cut?: boolean
  /** Turn numbers that are hidden, when this checkpoint is what an undo left: `2,3`. */
  hidden?: string
}

export interface Checkpoint extends CheckpointMeta {
  id: Oid
  tree: Oid
  parents: Oid[]
}

/** Whether what lies before a checkpoint is nobody's: it came after its turn ended. A late prompt still opens its turn. */
export function isOutside({ kind, late, inferred }: Pick<CheckpointMeta, 'kind' | 'late' | 'inferred'>): boolean {
  return late === true && kind !== 'before' && !inferred
}

/** What came after its turn ended may be of none: see isOutside. */
const isOfTurn = (meta: CheckpointMeta): boolean => meta.kind !== 'manual' && meta.kind !== 'safety' && !isOutside(meta)

const encode = (text: string): string =>
  Buffer.from(text, 'utf8')
    .toString('latin1')
    .replace(/[^A-Za-z0-9_.:/@+-]/g, (c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`)

const decode = (text: string): string =>
  Buffer.from(
    text.replace(/%([0-9A-F]{2})/g, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    'latin1',
  ).toString('utf8')

function subjectOf(meta: CheckpointMeta): string {
  if (meta.kind === 'manual') return 'manual snapshot'
  if (meta.kind === 'safety') return `${meta.result ? 'after' : 'safety before'} ${meta.op ?? 'undo'}`
  const turn = `turn ${meta.turn ?? 0}`
  if (meta.kind === 'step') return `${turn} step ${meta.step ?? 0}${meta.start ? ' start' : ''}`
  return `${turn} ${meta.kind}`
}

/** The line of a checkpoint's message that holds its client's marker id. */
export function markerTrailer(marker: string): string {
  return `Ckpt-Marker: ${encode(marker)}`
}

/** The commit message of a checkpoint. */
export function formatMessage(meta: CheckpointMeta): string {
  const lines = [subjectOf(meta), '']
  const add = (key: string, value: string | number | boolean | null | undefined) => {
    if (value === undefined || value === null || value === false) return
    lines.push(`Ckpt-${key}: ${value === true ? 'yes' : encode(String(value))}`)
  }
  add('Kind', meta.kind)
  add('Session', meta.session)
  add('Turn', meta.turn)
  add('Step', meta.step)
  add('Start', meta.start)
  add('Late', meta.late)
  add('Imported', meta.imported)
  add('Degraded', meta.degraded)
  add('Amid-Hooks', meta.amidHooks)
  add('Message-Id', meta.messageId)
  add('Marker', meta.marker)
  add('Agent', meta.agent)
  add('Tool', meta.tool)
  for (const path of meta.paths ?? []) add('Path', Buffer.from(path, 'latin1').toString('base64'))
  add('Call-Id', meta.callId)
  add('Status', meta.status)
  add('Background', meta.background)
  add('Inferred', meta.inferred)
  add('Prompt-Kind', meta.promptKind)
  add('Parent-Session', meta.parentSession)
  add('Head', meta.head)
  add('Branch', meta.branch)
  add('Op', meta.op)
  add('Result', meta.result)
  add('Record', meta.record)
  add('Dirty', meta.dirty)
  add('Cut', meta.cut)
  add('Hidden', meta.hidden)
  add('Seq', meta.seq)
  add('Beside', meta.beside)
  add('Time', meta.time)
  return `${lines.join('\n')}\n`
}

const kinds = new Set<string>(['before', 'step', 'after', 'manual', 'safety'])
const statuses = new Set<string>(['completed', 'interrupted', 'failed'])
const promptKinds = new Set<string>(['prompt', 'command', 'shell', 'compaction'])

/** Whether a text is a time as we write it: ISO 8601 UTC with milliseconds. */
export function isTime(text: string): boolean {
  return /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/.test(text) && !Number.isNaN(Date.parse(text))
}

const damaged = (why: string) =>
  new CkptError('DAMAGED', `A checkpoint's commit cannot be read (${why}). Nothing was changed.`, {
    hints: ['ckpt verify'],
  })

/**
 * A commit object's bytes (git's `commit` format) to a checkpoint. What we would not have written is damage: git, reading
 * the same bytes, could take it for something else than is read here.
 * @throws CkptError DAMAGED
 */
export function parseCheckpoint(id: Oid, commit: string): Checkpoint {
  const fail = (why: string) => damaged(`${id}: ${why}`)
  const split = commit.indexOf('\n\n')
  if (split < 0) throw fail('no header')
  if (commit.includes('\0')) throw fail('a NUL byte, where git stops reading')
  const { tree, parents } = parseHeader(commit.slice(0, split), id, fail)
  const one = new Map<string, string>()
  const paths: string[] = []
  for (const line of commit.slice(split + 2).split('\n')) {
    const match = /^Ckpt-([A-Za-z-]+): (.*)$/.exec(line)
    if (!match) continue
    if (match[1] === 'Path') paths.push(Buffer.from(decode(match[2]!), 'base64').toString('latin1'))
    else if (one.has(match[1]!)) throw fail(`Ckpt-${match[1]} twice`)
    else one.set(match[1]!, decode(match[2]!))
  }
  const text = (key: string) => one.get(key)
  const checked = (key: string, fits: (text: string) => boolean) => {
    const value = one.get(key)
    if (value !== undefined && !fits(value)) throw fail(`Ckpt-${key} is ${JSON.stringify(value.slice(0, 80))}`)
    return value
  }
  const number = (key: string) => {
    const value = checked(key, (digits) => /^[1-9]\d*$/.test(digits) && Number.isSafeInteger(Number(digits)))
    return value === undefined ? undefined : Number(value)
  }
  const kind = checked('Kind', (name) => kinds.has(name))
  const seq = number('Seq')
  const beside = checked('Beside', isOid)
  const session = text('Session')
  const time = checked('Time', isTime)
  if (!kind || !session || !beside || !time || seq === undefined) throw fail('trailers missing')
  const meta: Checkpoint = {
    id,
    tree,
    parents,
    kind: kind as CheckpointKind,
    session: session as SessionId,
    seq,
    beside: beside as Oid,
    time,
  }
  const set = <K extends keyof CheckpointMeta>(key: K, value: CheckpointMeta[K] | undefined) => {
    if (value !== undefined) meta[key] = value as Checkpoint[K]
  }
  set('turn', number('Turn') as TurnNumber | undefined)
  set('step', number('Step'))
  for (const [key, name] of [
    ['start', 'Start'],
    ['late', 'Late'],
    ['degraded', 'Degraded'],
    ['amidHooks', 'Amid-Hooks'],
    ['inferred', 'Inferred'],
    ['result', 'Result'],
    ['dirty', 'Dirty'],
    ['cut', 'Cut'],
  ] as const) {
    if (one.has(name)) meta[key] = true
  }
  const imported = checked('Imported', (digits) => /^\d{1,15}$/.test(digits))
  set('imported', imported === undefined ? undefined : Number(imported))
  set('messageId', text('Message-Id'))
  set('marker', text('Marker'))
  set('agent', text('Agent'))
  set('tool', text('Tool'))
  if (paths.length > 0) meta.paths = paths
  set('callId', text('Call-Id'))
  set('background', number('Background'))
  set('status', checked('Status', (name) => statuses.has(name)) as CheckpointMeta['status'])
  // The git hooks read a line of it: nothing in it may end one.
  set(
    'hidden',
    checked('Hidden', (list) => /^[\d,]*$/.test(list)),
  )
  set('promptKind', checked('Prompt-Kind', (name) => promptKinds.has(name)) as PromptKind | undefined)
  set('parentSession', text('Parent-Session'))
  set('head', checked('Head', isOid) as Oid | undefined)
  set('branch', text('Branch'))
  set('op', text('Op'))
  set('record', checked('Record', isOid) as Oid | undefined)
  if (isOfTurn(meta) && meta.turn === undefined) throw fail('a checkpoint of a turn without Ckpt-Turn')
  if (isOfTurn(meta) && kind === 'step' && meta.step === undefined) throw fail('a step without Ckpt-Step')
  return meta
}

/** One tree, at most one parent, and who wrote it: a header more, such as `encoding`, would change how git reads the rest. */
function parseHeader(header: string, id: Oid, fail: (why: string) => CkptError): { tree: Oid; parents: Oid[] } {
  const named: Record<string, Oid[]> = { tree: [], parent: [] }
  for (const line of header.split('\n')) {
    const [, key, value] = /^(tree|parent|author|committer) (.*)$/.exec(line) ?? []
    if (key === undefined) throw fail('a header that ckpt does not write')
    if (!named[key]) continue
    if (!isOid(value!) || value.length !== id.length) throw fail(`its ${key} is no object id`)
    named[key].push(value)
  }
  const { tree, parent } = named
  if (tree!.length !== 1) throw fail(`${tree!.length} trees`)
  if (parent!.length > 1) throw fail(`${parent!.length} parents`)
  return { tree: tree![0]!, parents: parent! }
}

/** The turns that begin in the chain of a tip. */
export function turnsBegun(checkpoints: ReadonlyMap<Oid, Checkpoint>, tip: Oid | undefined): Set<TurnNumber> {
  const turns = new Set<TurnNumber>()
  for (let one = tip && checkpoints.get(tip); one; one = one.parents[0] && checkpoints.get(one.parents[0]))
    if (one.kind === 'before') turns.add(one.turn!)
  return turns
}

/** A turn's id: stays when its number means something else in another session. */
export function turnId(before: Oid): string {
  return `t${before.slice(0, 12)}`
}

/**
 * A turn's description: the first 80 characters (code points) of its prompt on one line; of several content blocks the
 * first that has text; without any `Checkpoint at HH:MM:SS` (UTC) of `time`.
 */
export function describePrompt(text: string | null, time: string): string {
  const line = firstText(text).replace(/\s+/g, ' ').trim()
  if (line === '') return `Checkpoint at ${time.slice(11, 19)}`
  return [...line].slice(0, 80).join('')
}

function firstText(text: string | null): string {
  if (text === null) return ''
  if (!/^\s*\[/.test(text)) return text
  try {
    const blocks: unknown = JSON.parse(text)
    if (!Array.isArray(blocks) || !blocks.every((b) => typeof b === 'object' && b !== null && 'type' in b)) return text
    const first = blocks.find(
      (b: { type: unknown; text?: unknown }) => typeof b.text === 'string' && b.text.trim() !== '',
    )
    return first ? String(first.text) : ''
  } catch {
    return text // a prompt that only begins like JSON is a prompt
  }
}
