/** Whole trees as plain maps, read straight from the disk, and random edits of them. Paths are latin1: one character a byte. */
import fs from 'node:fs'
import fc from 'fast-check'

export interface Node {
  type: 'file' | 'link' | 'directory'
  /** Permission bits; 0 for links, where they mean nothing. */
  mode: number
  /** Content, or a link's target, latin1. */
  body: string
}

/** Directories by their path with a trailing slash. */
export type Tree = Map<string, Node>

export const sameNode = (a: Node | undefined, b: Node | undefined): boolean =>
  a === b || (a !== undefined && b !== undefined && a.type === b.type && a.mode === b.mode && a.body === b.body)

const bytes = (text: string) => Buffer.from(text, 'latin1')
const content = (body: string) => bytes(body === LONG ? 'long\n'.repeat(20_000) : body)
const below = (root: string, path: string) => Buffer.concat([Buffer.from(`${root}/`), bytes(path)])

/** Everything below a directory but `.git`, and what must not move where nothing is to be written: inode and mtime. */
export function readTree(root: string): { tree: Tree; stamps: Map<string, string> } {
  const tree: Tree = new Map()
  const stamps = new Map<string, string>()
  const walk = (directory: string) => {
    for (const name of fs.readdirSync(below(root, directory), { encoding: 'latin1' }).sort()) {
      if (directory === '' && name === '.git') continue
      const path = `${directory}${name}`
      const at = below(root, path)
      const stats = fs.lstatSync(at, { bigint: true })
      const mode = Number(stats.mode) & 0o7777
      if (stats.isDirectory()) {
        tree.set(`${path}/`, { type: 'directory', mode, body: '' })
        walk(`${path}/`)
        continue
      }
      stamps.set(path, `${stats.ino} ${stats.mtimeNs}`)
      if (stats.isSymbolicLink())
        tree.set(path, { type: 'link', mode: 0, body: fs.readlinkSync(at, { encoding: 'latin1' }) })
      else tree.set(path, { type: 'file', mode, body: fs.readFileSync(at, 'latin1') })
    }
  }
  walk('')
  return { tree, stamps }
}

export type Edit =
  | { kind: 'write'; path: string; body: string; mode: number; inPlace: boolean }
  | { kind: 'link'; path: string; target: string }
  | { kind: 'mkdir'; path: string; mode: number }
  | { kind: 'chmod'; path: string; mode: number }
  | { kind: 'remove'; path: string }
  | { kind: 'move'; path: string; to: string }

/** Names that break things, with clashes: `a` is a file, a link and a directory in turn; `dir-`, `dir/`, `dir0` sort around the slash. */
const PATHS = [
  ...['a', 'a', 'a/b', 'a/b/c', 'a/b', 'dir/x', 'dir/y', 'dir/sub/z', 'dir-', 'dir0', 'dir', 'b.txt', 'b.txt'],
  ...[`sp ace/q'uo"te`, 'new\nline', 'tab\there', '-dash', '--', '*', '[x]', ':colon', '\\back\\slash', '.hidden'],
  ...['#hash', '!bang', 'trail ', 'Case', 'case', 'n'.repeat(255), '$(touch x)', '%41', ' ', 'q?', '.gitkeep'],
  ...['\xc3\xbc\xc3\xaf', 'e\xcc\x81', '\xc3\xa9', '\xff\xfe-bad', 'dir/\xf0\x9f\x98\x80', '\xe2\x80\xae'],
  ...['x.log', 'dir/x.log', 'a/x.log', 'tracked.log', 'dir/e', 'a/e', 'e/e/e'],
] as const

/** Nine lines of which three vary, far enough apart that changes of different ones merge. */
export const lines = (slots: readonly number[]): string =>
  Array.from({ length: 9 }, (_, i) => (i % 4 === 0 ? `slot ${i / 4} = ${slots[i / 4]}\n` : `line ${i}\n`)).join('')

/** Stands for 100 KB, so that a story can be read. */
const LONG = 'long'

const slot = fc.integer({ min: 0, max: 2 })
const body = fc.oneof(
  { weight: 4, arbitrary: fc.tuple(slot, slot, slot).map(lines) },
  { weight: 4, arbitrary: fc.constantFrom('A\n', 'B\n', 'C\n') }, // the same size: only the bytes tell
  { weight: 1, arbitrary: fc.constantFrom('', 'no newline', 'CR\r\nLF\r\n', '\xff\xfe\x00\x01', '\x00bin', '$Id$\n') },
  { weight: 1, arbitrary: fc.constant(LONG) },
)
const path = fc.constantFrom(...PATHS)
const fileMode = fc.constantFrom(0o644, 0o644, 0o644, 0o755, 0o600, 0o444, 0o640, 0o711)
const directoryMode = fc.constantFrom(0o755, 0o755, 0o700, 0o775)
const target = fc.constantFrom('a', 'dir', '../out', '/nowhere', 'b.txt', '\xff')

const edit: fc.Arbitrary<Edit> = fc.oneof(
  {
    weight: 8,
    arbitrary: fc.record({ kind: fc.constant('write' as const), path, body, mode: fileMode, inPlace: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ kind: fc.constant('link' as const), path, target }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('mkdir' as const), path, mode: directoryMode }) },
  {
    weight: 1,
    arbitrary: fc.record({ kind: fc.constant('chmod' as const), path, mode: fc.oneof(fileMode, directoryMode) }),
  },
  { weight: 3, arbitrary: fc.record({ kind: fc.constant('remove' as const), path }) },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('move' as const), path, to: path }) },
)

const again: fc.Arbitrary<Edit> = fc.record({
  kind: fc.constant('write'),
  path: fc.constantFrom('a', 'b.txt'),
  body,
  mode: fc.constantFrom(0o644, 0o644, 0o755),
  inPlace: fc.boolean(),
})

export const edits = (max: number): fc.Arbitrary<Edit[]> =>
  fc.oneof(
    { weight: 3, arbitrary: fc.array(edit, { minLength: 1, maxLength: max }) },
    // The same few paths again and again, as an agent does.
    { weight: 1, arbitrary: fc.array(again, { minLength: 1, maxLength: 2 }) },
  )

/** What of `*.log` no rule covers; `tracked.log` is in the user's index. */
export const isIgnored = (path: string): boolean => path.endsWith('.log') && path !== 'tracked.log'

/** Carries out an edit as a careless program would: whatever is in the way goes. */
export function applyEdit(root: string, one: Edit): void {
  const at = below(root, one.path)
  const stats = isReachable(root, one.path) ? fs.lstatSync(at, { throwIfNoEntry: false }) : undefined
  if (one.kind === 'remove') {
    if (stats) fs.rmSync(at, { recursive: true })
  } else if (one.kind === 'chmod') {
    if (!stats || stats.isSymbolicLink()) return
    fs.chmodSync(at, stats.isDirectory() ? one.mode | 0o700 : one.mode)
  } else if (one.kind === 'move') {
    if (!stats || one.to === one.path || one.to.startsWith(`${one.path}/`) || one.path.startsWith(`${one.to}/`)) return
    if (isIgnored(one.path) !== isIgnored(one.to) || one.to === 'tracked.log') return
    makeRoom(root, one.to)
    fs.renameSync(at, below(root, one.to))
  } else if (one.kind === 'write' && one.inPlace && stats?.isFile()) {
    fs.chmodSync(at, 0o600)
    fs.writeFileSync(at, content(one.body)) // the same inode
    fs.chmodSync(at, one.mode)
  } else {
    makeRoom(root, one.path)
    if (one.kind === 'link') fs.symlinkSync(bytes(one.target), at)
    else if (one.kind === 'mkdir') {
      if (isIgnored(one.path) || one.path === 'tracked.log') return
      fs.mkdirSync(at)
      fs.chmodSync(at, one.mode)
    } else {
      fs.writeFileSync(at, content(one.body))
      fs.chmodSync(at, one.mode)
    }
  }
}

/** Whether all above a path are real directories: nothing is done through a symlink. */
function isReachable(root: string, path: string): boolean {
  const parts = path.split('/')
  return parts.slice(1).every((_, i) => {
    const above = below(root, parts.slice(0, i + 1).join('/'))
    return fs.lstatSync(above, { throwIfNoEntry: false })?.isDirectory()
  })
}

function makeRoom(root: string, path: string): void {
  const parts = path.split('/')
  for (let i = 1; i < parts.length; i++) {
    const above = below(root, parts.slice(0, i).join('/'))
    const stats = fs.lstatSync(above, { throwIfNoEntry: false })
    if (stats?.isDirectory()) continue
    if (stats) fs.rmSync(above)
    fs.mkdirSync(above)
    fs.chmodSync(above, 0o755)
  }
  fs.rmSync(below(root, path), { recursive: true, force: true })
}
