/**
 * Refs as plain files keep them, read in this process: to start a git takes as long as the rest of a short command. What is
 * anything but plain is left to git, which also knows what is wrong with it. gitrepository-layout(5), git-pack-refs(1).
 */
import { type HashName, isOid, type Oid } from '../core/ids.ts'
import { type Env, errno, lstatIfThere } from '../env.ts'

export interface PlainRef {
  ref: string
  oid: Oid
}

/** More than these are asked of git, which reads them faster. */
const MOST_REFS = 32
/** Bytes. */
const MOST_PACKED = 1 << 18

/** Whether git takes it for a name, whatever file system it lies on (git-check-ref-format(1)); no others are looked at here. */
const isName = (ref: string): boolean =>
  ref.split('/').every((part) => /^[!-}]+$/.test(part) && !/^\.|\.$|\.lock$|\.\.|@\{|[\^:?*[\\]/.test(part))

class NotPlain extends Error {}

/** Null where `read` comes upon what is not plain, or cannot be read at all. */
function orGit<T>(read: () => T): T | null {
  try {
    return read()
  } catch (error) {
    if (error instanceof NotPlain || errno(error) !== undefined) return null
    throw error
  }
}

/** An object id on a line of its own, other than none at all. @throws NotPlain */
function oidIn(text: string, hash: HashName): Oid {
  const oid = text.slice(0, -1)
  if (!text.endsWith('\n') || !isOid(oid) || oid.length !== (hash === 'sha1' ? 40 : 64) || /^0+$/.test(oid))
    throw new NotPlain()
  return oid
}

/** Null: there is no such file. @throws NotPlain */
function readPlain({ files }: Env, path: string, most = 1024): string | null {
  const stats = files.lstatSync(path, { throwIfNoEntry: false }) // one below a file is an error
  if (!stats) return null
  if (!stats.isFile() || stats.size > most) throw new NotPlain()
  return files.readFileSync(path, 'latin1')
}

function looseOid(env: Env, path: string, hash: HashName): Oid | null {
  const text = readPlain(env, path)
  return text === null ? null : oidIn(text, hash)
}

function packedRefs(env: Env, gitDir: string, hash: HashName): Map<string, Oid> {
  const packed = new Map<string, Oid>()
  let last = ''
  const text = readPlain(env, `${gitDir}/packed-refs`, MOST_PACKED) ?? ''
  if (text !== '' && !text.endsWith('\n')) throw new NotPlain()
  for (const [i, line] of text.split('\n').slice(0, -1).entries()) {
    if (i === 0 && line.startsWith('#')) continue
    if (last !== '' && line.startsWith('^')) {
      oidIn(`${line.slice(1)}\n`, hash)
      continue
    }
    const space = line.indexOf(' ')
    const ref = line.slice(space + 1)
    if (ref <= last) throw new NotPlain() // git looks for them where they belong
    packed.set(ref, oidIn(`${line.slice(0, space)}\n`, hash))
    last = ref
  }
  return packed
}

interface RefPlace {
  /** Where the refs of all worktrees are. */
  gitDir: string
  hash: HashName
}

/** As git writes them into a store. */
const SETTINGS = [
  String.raw`\[(core|extensions|gc|notes|receive)\]`,
  String.raw`\t(bare|denynonfastforwards|filemode|ignorecase|precomposeunicode|symlinks) = (true|false)`,
  String.raw`\t(repositoryformatversion = [01]|sharedrepository = 0600|objectformat = sha256|auto = 0)`,
  String.raw`\tdisplayref = refs/notes/ckpt/\*`,
]
const CONFIG = new RegExp(`^((${SETTINGS.join('|')})\n)+$`, 'i')

/** Its configuration is as it was made: git says so of one that it cannot read. */
const isReadable = (env: Env, gitDir: string): boolean => CONFIG.test(readPlain(env, `${gitDir}/config`) ?? '')

/** All refs of a store that begin with one of `prefixes` (up to a slash), by name as for-each-ref has them; null: git is to be asked. */
export function plainRefs(env: Env, place: RefPlace, prefixes: readonly string[]): PlainRef[] | null {
  return orGit(() => {
    const { gitDir, hash } = place
    const isWhole = isReadable(env, gitDir) && lstatIfThere(env.files, `${gitDir}/refs`)?.isDirectory()
    if (!isWhole || hasTables(env, gitDir)) return null
    const found = new Map<string, Oid>()
    const look = (ref: string) => {
      if (lstatIfThere(env.files, `${gitDir}/${ref}`)?.isDirectory()) {
        for (const name of env.files.readdirSync(`${gitDir}/${ref}`))
          if (!name.startsWith('.') && !name.endsWith('.lock')) look(`${ref}/${name}`) // git passes over the others
        return
      }
      const oid = looseOid(env, `${gitDir}/${ref}`, hash)
      if (oid) found.set(ref, oid)
      if (found.size > MOST_REFS) throw new NotPlain()
    }
    for (const prefix of prefixes) look(prefix.replace(/\/$/, ''))
    // After the files: what is packed meanwhile is missed in neither.
    const refs = [...new Map([...packedRefs(env, gitDir, hash), ...found])]
      .filter(([ref]) => prefixes.some((prefix) => ref === prefix || ref.startsWith(prefix.replace(/\/?$/, '/'))))
      .map(([ref, oid]) => ({ ref, oid }))
    if (refs.length > MOST_REFS || !refs.every(({ ref }) => isName(ref))) return null
    return refs.sort((a, b) => (a.ref < b.ref ? -1 : 1))
  })
}

/** The commit that HEAD is at; null: there is none yet, or git is to be asked. `gitDir`: the worktree's own. */
export function plainHead(env: Env, { gitDir: common, hash }: RefPlace, gitDir: string): Oid | null {
  return orGit(() => {
    if (hasTables(env, common)) return null
    const text = readPlain(env, `${gitDir}/HEAD`) ?? ''
    const ref = /^ref: (refs\/heads\/.+)\n$/.exec(text)?.[1]
    if (ref === undefined) return oidIn(text, hash)
    if (!isName(ref)) return null
    return looseOid(env, `${common}/${ref}`, hash) ?? packedRefs(env, common, hash).get(ref) ?? null
  })
}

/** Kept otherwise: git-config(1), extensions.refStorage. */
export const hasTables = ({ files }: Env, gitDir: string): boolean => files.existsSync(`${gitDir}/reftable`)
