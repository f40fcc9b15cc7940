/**
 * In a container, what shows others that a process lives, whichever pid namespace they are in: a fifo that it holds open for
 * reading. Once nobody does, who would write to it is told so (fifo(7), ENXIO). Process numbers mean nothing over there.
 */
import { constants } from 'node:fs'
import { type Env, errno } from '../../env.ts'
import { removeIfThere } from '../../git/whole-file.ts'
import { makeFifos } from './fifos.ts'

export interface Sign {
  name: string
  /** Device and inode: in a copy of the directory, or where it is mounted once more, lies another fifo. */
  at: string
}

interface Shown {
  made: Promise<Made | null>
  users: number
}

interface Made {
  sign: Sign
  path: string
  fd: number
}

const NAME = /^alive-[0-9a-f]{16}$/
/** The first pid namespace, the system's own (linux/proc_ns.h, PROC_PID_INIT_INO). */
const SYSTEM = 'pid:[4026531836]'

/** By directory; one for all that this process does there at once. */
const shown = new WeakMap<Env['files'], Map<string, Shown>>()

/** Shows a sign in a directory while `work` goes on, which is given it; null: none is needed, or none can be made. */
export async function withSign<T>(
  env: Env,
  { directory, namespace }: { directory: string; namespace: string },
  work: (sign: Sign | null) => Promise<T>,
): Promise<T> {
  if (namespace === '' || namespace === SYSTEM) return work(null)
  const here = shown.get(env.files) ?? new Map<string, Shown>()
  shown.set(env.files, here)
  const one = here.get(directory) ?? { made: make(env, directory), users: 0 }
  here.set(directory, one)
  one.users++
  try {
    return await work((await one.made)?.sign ?? null)
  } finally {
    if (--one.users === 0) {
      here.delete(directory)
      const made = await one.made
      if (made) takeDown(env, made)
    }
  }
}

async function make(env: Env, directory: string): Promise<Made | null> {
  const { files } = env
  const name = `alive-${env.random(8)}`
  const path = `${directory}/${name}`
  if (!(await makeFifos(env, [path]))) return null
  try {
    const fd = files.openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
    const made = { sign: { name, at: whereIs(files.fstatSync(fd, { bigint: true })) }, path, fd }
    if (signState(env, directory, made.sign) === 'alive') return made
    takeDown(env, made) // a file system that makes two of one
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
  return null
}

/** It is of no use any more; where it cannot be removed a later process does. */
function takeDown(env: Env, { fd, path }: Made): void {
  env.files.closeSync(fd)
  try {
    removeIfThere(env, path)
  } catch (error) {
    if (errno(error) === undefined) throw error
  }
}

/** `dead` only where that very fifo is there, and nobody has it open. */
export function signState(env: Env, directory: string, { name, at }: Sign): 'alive' | 'dead' | 'unknown' {
  const { files } = env
  if (!NAME.test(name)) return 'unknown'
  const path = `${directory}/${name}`
  const stats = files.lstatSync(path, { bigint: true, throwIfNoEntry: false })
  if (!stats?.isFIFO() || whereIs(stats) !== at) return 'unknown'
  try {
    files.closeSync(files.openSync(path, constants.O_WRONLY | constants.O_NONBLOCK))
    return 'alive'
  } catch (error) {
    return errno(error) === 'ENXIO' ? 'dead' : 'unknown'
  }
}

/** Removes those of processes that are gone. Who calls this holds the lock in that directory: it is the one that would name one of them. */
export function sweepSigns(env: Env, directory: string): void {
  const { files } = env
  try {
    for (const name of files.readdirSync(directory)) {
      if (!NAME.test(name)) continue
      const stats = files.lstatSync(`${directory}/${name}`, { bigint: true, throwIfNoEntry: false })
      if (stats && signState(env, directory, { name, at: whereIs(stats) }) === 'dead')
        removeIfThere(env, `${directory}/${name}`)
    }
  } catch (error) {
    if (errno(error) === undefined) throw error // what cannot be swept stays
  }
}

const whereIs = ({ dev, ino }: { dev: bigint; ino: bigint }): string => `${dev} ${ino}`
