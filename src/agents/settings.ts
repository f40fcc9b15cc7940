/** What a settings file becomes with our entries in it, and without them. */
import { CkptError } from '../core/errors.ts'
import type { Env } from '../env.ts'
import type { HookSettings, SwitchedOff } from './agent.ts'
import {
  append,
  applyEdits,
  dataOf,
  type Edit,
  type Node,
  type Property,
  parseJsonc,
  type Range,
  take,
} from './jsonc.ts'

/** Where each insertion lies in the text that they made. */
export interface Added {
  text: string
  ranges: Range[]
}

export interface Ours {
  settings: HookSettings
  /** Whether a command runs our hook for this agent, and whether it does nothing else. */
  isOurs: (command: string) => boolean
  isOnlyOurs: (command: string) => boolean
  command: (event: string) => string
  /** A command that does more, with the program where it lies now. */
  moved: (command: string) => string
}

/** @throws CkptError CONFIG: it cannot be read, and is left alone */
function parseSettings(text: string, path: string): Node & { kind: 'object' } {
  let node: Node
  try {
    node = parseJsonc(text)
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause)
    throw unreadable(path, why, cause)
  }
  if (node.kind !== 'object') throw unreadable(path, 'it is no object')
  const hooks = property(node, 'hooks')
  if (hooks && hooks.kind !== 'object') throw unreadable(path, '`hooks` is no object')
  return node
}

function unreadable(path: string, why: string, cause?: unknown): CkptError {
  return new CkptError('CONFIG', `${path} cannot be read: ${why}. Nothing was changed.`, {
    hints: [`edit ${path}, then run the command again`],
    cause,
  })
}

function property(node: Node, key: string): Node | undefined {
  return node.kind === 'object' ? node.properties.find((one) => one.key === key)?.value : undefined
}

/** The events that have an entry of ours. */
export function installedEvents(text: string, path: string, ours: Ours): string[] {
  const hooks = property(parseSettings(text, path), 'hooks')
  if (hooks?.kind !== 'object') return []
  return hooks.properties
    .filter(({ value }) => value.kind === 'array' && value.items.some((item) => holdsOurs(item, ours)))
    .map(({ key }) => key)
}

/** The first of these keys (as paths) that is true in one of these files; what cannot be read says nothing. */
export function settingThatIs(
  { files: disk }: Env,
  files: readonly string[],
  { keys, wanted = true }: { keys: readonly (readonly string[])[]; wanted?: unknown },
): SwitchedOff | null {
  for (const path of files) {
    let node: Node
    try {
      if (!disk.statSync(path).isFile()) continue // a pipe would wait for ever
      node = parseJsonc(disk.readFileSync(path, 'utf8'))
    } catch {
      continue // not there, or the agent cannot read it either
    }
    for (const key of keys) {
      const value = key.reduce<Node | undefined>((at, name) => at && property(at, name), node)
      if (value?.kind === 'scalar' && value.value === wanted) return { key: key.join('.'), path }
    }
  }
  return null
}

/** What our entries tell the agent to run, each once. */
export function ourCommands(text: string, path: string, { settings, isOurs }: Ours): string[] {
  const hooks = property(parseSettings(text, path), 'hooks')
  if (hooks?.kind !== 'object') return []
  const entries = hooks.properties.flatMap(({ value }) => (value.kind === 'array' ? value.items : []))
  return [...new Set(entries.flatMap((item) => settings.commandsOf(dataOf(item))).filter(isOurs))]
}

const holdsOurs = (item: Node, { settings, isOurs }: Ours) => settings.commandsOf(dataOf(item)).some(isOurs)

/**
 * Appends what is missing; what is there stays as it is, but for the program's name. `ranges`: insertions that the text has
 * already. @throws CkptError CONFIG
 */
export function withOurs({ text, ranges }: Added, path: string, ours: Ours): Added {
  const { settings, command } = ours
  const wanted = settings.entries(command)
  if (text.replace(/^\uFEFF/, '').trim() === '') {
    const hooks = Object.fromEntries(wanted.map(({ event, entry }) => [event, [entry]]))
    const insert = `${JSON.stringify({ ...settings.skeleton, hooks }, null, 2)}\n`
    return { text: text + insert, ranges: [{ start: text.length, end: text.length + insert.length }] }
  }
  let done: Added = { text, ranges }
  const root = parseSettings(text, path)
  if (!property(root, 'hooks')) {
    const hooks = Object.fromEntries(wanted.map(({ event, entry }) => [event, [entry]]))
    done = insertInto(done, append(text, { root, into: root }, { key: 'hooks', value: hooks }))
    for (const [key, value] of Object.entries(settings.skeleton ?? {})) {
      const now = parseSettings(done.text, path)
      if (!property(now, key)) done = insertInto(done, append(done.text, { root: now, into: now }, { key, value }))
    }
    return done
  }
  for (const { event, entry } of wanted) {
    const now = parseSettings(done.text, path)
    const hooks = property(now, 'hooks')!
    const list = property(hooks, event)
    if (!list) done = insertInto(done, append(done.text, { root: now, into: hooks }, { key: event, value: [entry] }))
    else if (list.kind !== 'array') throw unreadable(path, `\`hooks.${event}\` is no list`)
    else if (!list.items.some((item) => holdsOurs(item, ours)))
      done = insertInto(done, append(done.text, { root: now, into: list }, { value: entry }))
    else done = renamed(done, list, { ours, entry })
  }
  return done
}

/** The program lies elsewhere now: its command is written anew, in place; of a command that does more, its name. */
function renamed(done: Added, list: Node, { ours, entry }: { ours: Ours; entry: unknown }): Added {
  const [wanted] = ours.settings.commandsOf(entry)
  const edits: Edit[] = []
  const visit = (node: Node): void => {
    if (node.kind === 'array') for (const item of node.items) visit(item)
    if (node.kind !== 'object') return
    for (const { key, value } of node.properties) {
      const { kind, start, end } = value
      if (kind !== 'scalar' || key !== 'command') visit(value)
      else if (typeof value.value === 'string' && ours.isOurs(value.value)) {
        const now = ours.isOnlyOurs(value.value) ? wanted : ours.moved(value.value)
        if (now !== value.value) edits.push({ offset: start, remove: end - start, insert: JSON.stringify(now) })
      }
    }
  }
  visit(list)
  return insertInto(done, edits)
}

/** Edits of a text that has insertions already: those behind move on, one around grows. What replaces somebody's is none. */
function insertInto({ text, ranges }: Added, edits: readonly Edit[]): Added {
  let now = ranges
  for (const { offset, remove, insert } of [...edits].sort((a, b) => b.offset - a.offset)) {
    const more = insert.length - remove
    const inside = now.some(({ start, end }) => start < offset && offset < end)
    now = now.map(({ start, end }) => ({
      start: start >= offset ? start + more : start,
      end: end > offset ? end + more : end,
    }))
    if (!inside && remove === 0) now.push({ start: offset, end: offset + more })
  }
  return { text: applyEdits(text, edits), ranges: now }
}

/** The text before the insertions. Right only for the very text that they made. */
export function withoutRanges({ text, ranges }: Added): string {
  return applyEdits(
    text,
    ranges.map(({ start, end }) => ({ offset: start, remove: end - start, insert: '' })),
  )
}

/** Of the keys that an install may make, those that are there before it, as `hooks.Stop`; none, where there is no object at all. */
export function keysBefore(text: string, path: string, { settings, command }: Ours): string[] {
  if (text.replace(/^\uFEFF/, '').trim() === '') return []
  const root = parseSettings(text, path)
  const hooks = property(root, 'hooks')
  const events = settings.entries(command).flatMap(({ event }) => (hooks && property(hooks, event) ? [event] : []))
  const others = Object.keys(settings.skeleton ?? {}).filter((key) => property(root, key))
  return [...(hooks ? ['hooks'] : []), ...events.map((event) => `hooks.${event}`), ...others]
}

/**
 * Takes our entries out of a text that others changed since, and what they leave empty, unless it was there `before` them
 * (null: that is not known). What does more stays. @throws CkptError CONFIG
 */
export function withoutOurs(text: string, path: string, { before, ...ours }: Ours & Before): string {
  const only = { ...ours, isOurs: ours.isOnlyOurs, before }
  let now = text
  for (let edits = nextRemoval(now, path, only); edits; edits = nextRemoval(now, path, only))
    now = applyEdits(now, edits)
  for (const [key, value] of Object.entries(before ? (ours.settings.skeleton ?? {}) : {})) {
    const root = parseSettings(now, path)
    const at = root.properties.findIndex((one) => one.key === key && dataOf(one.value) === value)
    if (!property(root, 'hooks') && at >= 0 && !before!.includes(key)) now = applyEdits(now, take(now, root, at))
  }
  return now
}

interface Before {
  before: readonly string[] | null
}

/** Whether somebody's comment is beside what a list or an object holds alone: it stays, and so does that around it. */
const isCommented = (text: string, around: Range, one: Range) =>
  /\/[/*]/.test(text.slice(around.start, one.start) + text.slice(one.end, around.end))

/** The same between a key and its value; a key of ours needs no escapes. */
const isCommentedKey = (text: string, { key, start, value }: Property) =>
  /\/[/*]/.test(text.slice(start + JSON.stringify(key).length, value.start))

function nextRemoval(text: string, path: string, { before, ...ours }: Ours & Before): Edit[] | null {
  const wasThere = (key: string) => before?.includes(key) ?? false
  const root = parseSettings(text, path)
  const hooks = property(root, 'hooks')
  if (hooks?.kind !== 'object') return null
  for (const [index, { value: list }] of hooks.properties.entries()) {
    if (list.kind !== 'array') continue
    const at = list.items.findIndex((item) => holdsOurs(item, ours))
    if (at < 0) continue
    const item = list.items[at]!
    const inner = property(item, 'hooks')
    if (inner?.kind === 'array' && !ours.settings.commandsOf(dataOf(item)).every(ours.isOurs)) {
      const own = inner.items.findIndex((one) => {
        const command = property(one, 'command')
        return command?.kind === 'scalar' && typeof command.value === 'string' && ours.isOurs(command.value)
      })
      return own < 0 ? null : take(text, inner, own)
    }
    const event = hooks.properties[index]!
    const isTheirs = wasThere(`hooks.${event.key}`) || isCommentedKey(text, event)
    if (list.items.length > 1 || isTheirs || isCommented(text, list, item)) return take(text, list, at)
    const all = root.properties.findIndex(({ key }) => key === 'hooks')
    const areTheirs = wasThere('hooks') || isCommentedKey(text, root.properties[all]!)
    if (hooks.properties.length > 1 || areTheirs || isCommented(text, hooks, event)) return take(text, hooks, index)
    return take(text, root, all)
  }
  return null
}
