/** Hook files on disk: read, put in place, put aside and given back. */
import { CkptError } from '../core/errors.ts'
import { type Env, errno, lstatIfThere, statIfThere } from '../env.ts'
import { type Draft, draftFile, removeIfEmpty, removeIfThere } from '../git/whole-file.ts'
import type { Context } from '../ops/worktree/context.ts'
import { sweepDrafts } from '../ops/worktree/half-made.ts'
import type { HookName, Templates } from './hook-file.ts'

export interface HookOnDisk {
  path: string
  /** What is `unreadable` may be any of the others. */
  kind: 'absent' | 'file' | 'link' | 'other' | 'unreadable'
  /** Bytes as latin1; of a link, those of its target; empty where there is none, or none to be seen. */
  text: string
  mode: number
  /** Whether git would run it: it is there and executable. */
  runs: boolean
}

export function readHook({ files }: Env, directory: string, hook: HookName): HookOnDisk {
  const path = `${directory}/${hook}`
  const none = { path, text: '', mode: 0, runs: false }
  try {
    const own = files.lstatSync(path)
    const kind = own.isSymbolicLink() ? 'link' : own.isFile() ? 'file' : 'other'
    const stats = kind === 'link' ? statIfThere(files, path) : own
    if (!stats?.isFile()) return { ...none, kind }
    const mode = stats.mode & 0o7777
    return { path, kind, text: files.readFileSync(path, 'latin1'), mode, runs: (mode & 0o111) !== 0 }
  } catch (error) {
    const code = errno(error)
    if (code === 'ENOENT' || code === 'ENOTDIR') return { ...none, kind: 'absent' }
    if (code === 'EACCES') return { ...none, kind: 'unreadable' }
    throw error
  }
}

/** Whole or not at all: a commit may be running this very hook, and most of it may be the user's. `text`: bytes as latin1. */
export const writeHook = (env: Env, path: string, { text, mode }: { text: string; mode: number }): void =>
  draftHook(env, path, { text, mode }).place()

/** What `writeHook` writes, not yet in its place. */
export const draftHook = (env: Env, path: string, { text, mode }: { text: string; mode: number }): Draft =>
  draftFile(env, path, { content: Buffer.from(text, 'latin1'), mode, owner: lstatIfThere(env.files, path) })

/** Where another hook is kept, seen from the hooks directory. A link keeps its name: it may be a program that goes by it. */
export function keptNames(hook: HookName): { file: string; link: string; disabled: string } {
  return { file: `${hook}.ckpt-kept`, link: `ckpt-kept/${hook}`, disabled: `${hook}.ckpt-disabled` }
}

/** What its kept name will be, seen from the hooks directory. */
export const keptName = (hook: HookName, { kind, runs }: HookOnDisk) => {
  const names = keptNames(hook)
  return !runs ? names.disabled : kind === 'link' ? names.link : names.file
}

/** @throws CkptError USAGE when something lies where a hook is to be kept */
export function refuseIfKept(
  { files }: Env,
  { directory, hook }: { directory: string; hook: HookName },
  found: HookOnDisk,
): void {
  const kept = `${directory}/${keptName(hook, found)}`
  if (!lstatIfThere(files, kept)) return
  throw new CkptError(
    'USAGE',
    `${found.path} was to be kept as ${kept}, but something lies there. No hook was changed.`,
    { hints: [`look at ${kept}, and move it away`, 'ckpt hooks install'] },
  )
}

/** Moves a hook to its kept name; nothing lies there. */
export function keepAside(
  env: Env,
  { directory, hook }: { directory: string; hook: HookName },
  found: HookOnDisk,
): void {
  const { files } = env
  const name = keptName(hook, found)
  const kept = `${directory}/${name}`
  if (name !== keptNames(hook).link) {
    files.renameSync(found.path, kept)
    return
  }
  files.mkdirSync(`${directory}/ckpt-kept`, { recursive: true })
  const target = files.readlinkSync(found.path)
  files.symlinkSync(target.startsWith('/') ? target : `../${target}`, kept)
  files.unlinkSync(found.path)
}

/** Puts the kept hook back over ours. False: none was kept. */
export function giveBack(env: Env, directory: string, hook: HookName): boolean {
  const { files } = env
  const names = keptNames(hook)
  const path = `${directory}/${hook}`
  for (const name of [names.file, names.disabled]) {
    if (!lstatIfThere(files, `${directory}/${name}`)) continue
    files.renameSync(`${directory}/${name}`, path)
    return true
  }
  const link = `${directory}/${names.link}`
  if (!lstatIfThere(files, link)) return false
  const target = files.readlinkSync(link)
  files.unlinkSync(path)
  files.symlinkSync(target.startsWith('/') ? target : target.replace(/^\.\.\//, ''), path)
  files.unlinkSync(link)
  removeIfEmpty(env, `${directory}/ckpt-kept`)
  return true
}

/** Our own directory for the gate, in the git directory that all worktrees share. */
export const gateDirectory = ({ repository }: Context): string => `${repository?.commonDir}/ckpt/hooks`

/** In it: where hooks of ours are (`ledger.ts`). */
export const LEDGER = 'installed.json'

/** The gate's files, as the installed ckpt writes them here; the one that the hooks read first comes last. */
export const gateFiles = ({ gate, refuse, more }: Templates): [name: string, text: string][] => [
  ['gate-refuse.sh', refuse],
  ['gate-more.sh', more],
  ['gate.sh', gate],
]

export function removeGate(context: Context): void {
  const directory = gateDirectory(context)
  for (const name of ['gate.sh', 'gate-refuse.sh', 'gate-more.sh', LEDGER])
    removeIfThere(context.env, `${directory}/${name}`)
  sweepDrafts(context.env, directory)
  removeIfEmpty(context.env, directory)
  removeIfEmpty(context.env, directory.slice(0, directory.lastIndexOf('/')))
}
