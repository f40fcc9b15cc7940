/** The files and directories of a store without which git takes it for none, and how to get them back. */
import type { Env } from '../env.ts'
import { removeTree } from './parcel.ts'
import { tryGit } from './process.ts'
import { makeFrame, Store, type StorePlace } from './store.ts'
import { readIfThere } from './whole-file.ts'

/** Files that git wants to see before it takes a directory for a repository; they never change, from first line to last. */
const FRAME = { HEAD: /^ref: refs\//, config: /^\[core\]\n.*\n\[gc\]\n\tauto = \d+\n/s }

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
export async function mendFrame(env: Env, place: StorePlace): Promise<string[]> {
  const { files } = env
  const broken = brokenFrame(env, place)
  if (broken.length === 0 && (await isReadable(env, place))) return []
  const names = broken.length > 0 ? broken : ['config']
  const fresh = await makeFrame(env, place)
  for (const name of names) files.renameSync(`${fresh}/${name}`, `${place.directory}/store.git/${name}`)
  removeTree(env, fresh)
  return names
}

async function isReadable(env: Env, place: StorePlace): Promise<boolean> {
  const { gitDir, vars } = Store.open(env, place)
  const { code, stderr } = await tryGit(env, { args: ['for-each-ref', '--count=1'], cwd: gitDir, vars })
  return code === 0 || !/bad (boolean |numeric )?config/.test(stderr)
}
