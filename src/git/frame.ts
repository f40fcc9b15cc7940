/** A store as git wants to see it: made, looked for, and mended where a part without which git takes it for none is missing. */
import { CkptError } from '../core/errors.ts'
import { quotedPath } from '../core/hint-words.ts'
import type { HashName } from '../core/ids.ts'
import { printable } from '../core/paths.ts'
import { type Env, errno, lstatIfThere, statIfThere } from '../env.ts'
import { closedIn, opening } from './closed.ts'
import { runGit, tryGit } from './process.ts'
import { Store, type StorePlace } from './store.ts'
import { makeDirectories, readIfThere, removeIfThere, removeTree, syncIfThere } from './whole-file.ts'

/** Files that git wants to see before it takes a directory for a repository; they never change, from first line to last. */
const FRAME = { HEAD: /^ref: refs\//, config: /^\[(?:core|extensions)\]\n.*\n\[gc\]\n\tauto = \d+\n/s }

/** A copy that leaves empty directories out has no `refs` once all are packed. */
const DIRECTORIES = ['objects', 'refs']

/** Of those, the ones that are missing or are not what git wrote. */
export function brokenFrame(env: Env, { directory }: StorePlace): string[] {
  const files = Object.entries(FRAME).flatMap(([name, form]) =>
    form.test(readIfThere(env, `${directory}/store.git/${name}`)?.toString('latin1') ?? '') ? [] : [name],
  )
  return [...files, ...DIRECTORIES.filter((name) => !env.files.existsSync(`${directory}/store.git/${name}`))]
}

/** Writes anew what {@link brokenFrame} names, or else a configuration that git cannot read. Returns their names. */
export async function mendFrame(env: Env, place: StorePlace, claim: Claim): Promise<string[]> {
  const { files } = env
  const broken = brokenFrame(env, place)
  if (broken.length === 0 && (await isReadable(env, place))) return []
  const names = broken.length > 0 ? broken : ['config']
  const { directory: fresh } = await makeFrame(env, place, claim)
  for (const name of names) files.renameSync(`${fresh}/${name}`, `${place.directory}/store.git/${name}`)
  removeTree(env, fresh)
  return names
}

async function isReadable(env: Env, place: StorePlace): Promise<boolean> {
  const { gitDir, vars } = Store.open(env, place)
  const { code, stderr } = await tryGit(env, { args: ['for-each-ref', '--count=1'], cwd: gitDir, vars })
  return code === 0 || !/bad (boolean |numeric )?config/.test(stderr)
}

/** gitattributes(5): what the store's info/attributes says wins over every file of the worktree. */
const ATTRIBUTES = '* -text -filter -ident -working-tree-encoding\n'

/** Whether a git directory is the store of some place. */
export function isStore({ files }: Env, gitDir: string): boolean {
  try {
    const [attributes, config] = ['info/attributes', 'config'].map((name) =>
      files.readFileSync(`${gitDir}/${name}`, 'latin1'),
    )
    return attributes === ATTRIBUTES && FRAME.config.test(config!)
  } catch (error) {
    if (errno(error) === undefined) throw error
    return false
  }
}

/**
 * A damaged one too: without its HEAD git takes it for none.
 * @throws CkptError where its directory is there and what lies in it cannot be known
 */
export function storeExists(env: Env, { directory }: StorePlace): boolean {
  const { files } = env
  if (['HEAD', 'objects'].some((name) => files.existsSync(`${directory}/store.git/${name}`))) return true
  if (!files.existsSync(directory)) return false
  try {
    return lstatIfThere(files, `${directory}/store.git/HEAD`) !== null
  } catch (cause) {
    const where = quotedPath(directory)
    throw new CkptError(
      'INTERNAL',
      `The store ${printable(directory)} cannot be looked into (${errno(cause) ?? 'unknown'}). Nothing was read, and nothing changed.`,
      {
        cause,
        hints: [
          `ls -ld ${where}   (whose it is)`,
          `${opening(directory, closedIn(env, directory))}   (lets you in)`,
          'store.location in your own .checkpointrc   (a store of your own, where several people share a repository)',
        ],
      },
    )
  }
}

/**
 * Where there is no store: what lies in its place has to be moved first, be it no directory, or one of other things.
 * @throws CkptError DAMAGED
 */
export function refuseOther(env: Env, place: StorePlace, outcome: string): void {
  const store = `${place.directory}/store.git`
  const inTheWay = [place.directory, store].find((at) => isNoDirectory(env, at))
  const found = inTheWay ?? (isFilled(env, store) && !isStoreLost(env, place) ? store : null)
  // It may have been made in this very moment.
  if (found === null || storeExists(env, place)) return
  const message = `Something that is no store lies where the store belongs: ${printable(found)}. ${outcome}`
  throw new CkptError('DAMAGED', message, {
    hints: [`ls -ld ${quotedPath(found)}   (what it is; move it away, then: ckpt doctor)`],
  })
}

/** False also where it cannot be known. */
function isNoDirectory({ files }: Env, path: string): boolean {
  try {
    return lstatIfThere(files, path) !== null && !statIfThere(files, path)?.isDirectory()
  } catch {
    return false
  }
}

function isFilled({ files }: Env, directory: string): boolean {
  try {
    return files.readdirSync(directory).length > 0
  } catch {
    return false
  }
}

/** The object format of a store that is there, as its own configuration says (git-config(1), `extensions.objectFormat`). */
export function hashOfStore(env: Env, { directory }: StorePlace): HashName {
  const config = readIfThere(env, `${directory}/store.git/config`)?.toString('latin1') ?? ''
  return /^\s*objectformat = sha256$/im.test(config) ? 'sha256' : 'sha1'
}

/** Whether refs were moved in a store that is not there any more. */
export function isStoreLost(env: Env, place: StorePlace): boolean {
  return worktreeNames(env, place).some((name) => wasMoved(env, place, name))
}

/** Whether a ref of this worktree was ever moved in a store. */
export function wasMoved({ files }: Env, { directory }: StorePlace, worktreeId: string): boolean {
  return files.existsSync(`${directory}/worktrees/${worktreeId}/tips`)
}

/** Ids of the worktrees that have a directory in the store, sorted; none where it was killed while it was made. */
export function worktreeNames({ files }: Pick<Env, 'files'>, { directory }: Pick<StorePlace, 'directory'>): string[] {
  const worktrees = `${directory}/worktrees`
  return files.existsSync(worktrees) ? files.readdirSync(worktrees).sort() : []
}

/** Says in a directory who is making it, so that others can tell whether it was left. Returns the name of the file that says so. */
export type Claim = (directory: string) => string

/** A store without anything in it, beside the place where it belongs. */
async function makeFrame(env: Env, place: StorePlace, claim: Claim): Promise<{ directory: string; owner: string }> {
  const directory = `${place.directory}/store.${env.random(6)}.tmp`
  env.files.mkdirSync(directory, { mode: 0o700 })
  try {
    const owner = claim(directory)
    await fillFrame(env, place, directory)
    return { directory, owner }
  } catch (error) {
    discard(env, directory)
    throw error
  }
}

/** On the way out of a failure, or of what another process did first: what stays is swept by a later command. */
function discard(env: Env, directory: string): void {
  try {
    removeTree(env, directory)
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}

async function fillFrame(env: Env, place: StorePlace, temporary: string): Promise<void> {
  const { files } = env
  await runGit(env, {
    args: ['init', '-q', '--bare', '--template=', `--object-format=${place.hash}`, '--shared=0600', temporary],
    cwd: place.directory,
    vars: { GIT_CONFIG_NOSYSTEM: '1', GIT_CONFIG_GLOBAL: '/dev/null', GIT_DEFAULT_REF_FORMAT: 'files' },
  })
  files.mkdirSync(`${temporary}/info`, { recursive: true, mode: 0o700 })
  files.writeFileSync(`${temporary}/info/attributes`, ATTRIBUTES, { mode: 0o600 })
  files.writeFileSync(
    `${temporary}/config`,
    // Plain `git log` in the store shows prompts.
    `${files.readFileSync(`${temporary}/config`, 'utf8')}[notes]\n\tdisplayRef = refs/notes/ckpt/*\n[gc]\n\tauto = 0\n`,
  )
  for (const name of ['HEAD', 'config']) files.chmodSync(`${temporary}/${name}`, 0o600)
  // Without them there is no store, whatever else is on the disk.
  for (const name of ['HEAD', 'config', 'info/attributes']) syncIfThere(env, `${temporary}/${name}`)
}

/** Makes the store if it is not there; safe for any number of processes at once. Returns whether this call made it. */
export async function createStore(env: Env, place: StorePlace, claim: Claim): Promise<boolean> {
  const { files } = env
  let created = false
  if (!storeExists(env, place)) {
    makeDirectories(env, place.directory)
    files.chmodSync(place.directory, 0o700)
    const { directory, owner } = await makeFrame(env, place, claim)
    try {
      for (const name of OWN_DIRECTORIES)
        if (files.existsSync(`${directory}${name}`)) files.chmodSync(`${directory}${name}`, 0o700)
      files.renameSync(directory, `${place.directory}/store.git`)
      created = true
    } catch (error) {
      discard(env, directory)
      const code = errno(error)
      if (code !== 'ENOTEMPTY' && code !== 'EEXIST') throw error // another process was first
    }
    if (created) removeIfThere(env, `${place.directory}/store.git/${owner}`)
  }
  files.mkdirSync(`${place.directory}/worktrees/${place.worktreeId}`, { recursive: true, mode: 0o700 })
  return created
}

const OWN_DIRECTORIES = [
  '',
  '/info',
  '/objects',
  '/objects/info',
  '/objects/pack',
  '/refs',
  '/refs/heads',
  '/refs/tags',
]
