/** File systems that another machine or program has a part in, by their statfs(2) types. */
import type { Env } from '../../env.ts'

const REMOTE = new Map([
  [0x6969, 'NFS'],
  [0x01021997, '9p'],
  [0x65735546, 'FUSE'],
  [0xff534d42, 'CIFS'],
  [0xfe534d42, 'SMB'],
])
const OVERLAY = 0x794c7630

const typeOf = (env: Env, directory: string): number => Number(env.files.statfsSync(directory).type)

/** The one that a directory is on, if locks and links are uncertain there; null: they are not. */
export const remoteFileSystem = (env: Env, directory: string): string | null =>
  REMOTE.get(typeOf(env, directory)) ?? null

/** The one that a directory is on, if the kernel does not report each change there; null: it does. */
export const silentFileSystem = (env: Env, directory: string): string | null =>
  typeOf(env, directory) === OVERLAY ? 'an overlay' : remoteFileSystem(env, directory)
