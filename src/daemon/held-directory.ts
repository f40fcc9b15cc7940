/** Which directory it is that lies at a path: the inode, not the name. */
import { constants } from 'node:fs'
import { type Env, statIfThere } from '../env.ts'

/** A directory that is held open: as long as it is, no other one gets its inode number. */
export class HeldDirectory {
  readonly #env: Env
  readonly #path: string
  readonly #fd: number

  constructor(env: Env, path: string) {
    this.#env = env
    this.#path = path
    this.#fd = env.files.openSync(path, constants.O_RDONLY | constants.O_DIRECTORY)
  }

  /** Whether it is still what lies at its path: it may have been removed, or another one put in its place or that of one above it. */
  get isThere(): boolean {
    const { files } = this.#env
    const [now, own] = [statIfThere(files, this.#path), files.fstatSync(this.#fd)]
    return now?.dev === own.dev && now.ino === own.ino
  }

  close(): void {
    this.#env.files.closeSync(this.#fd)
  }
}
