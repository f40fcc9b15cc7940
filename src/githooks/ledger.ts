/** What `install` did, for an `uninstall` after the hooks directory became another one. */
import path from 'node:path'
import { CkptError } from '../core/errors.ts'
import { commonDirOf } from '../git/repository.ts'
import { writeFileWhole } from '../git/whole-file.ts'
import type { Context } from '../ops/worktree/context.ts'
import { nearestAbove } from '../ops/worktree/place.ts'
import { gateDirectory, LEDGER } from './disk.ts'
import { realPath } from './place.ts'

export interface Ledger {
  /** Directories that hold hooks of ours. */
  directories: string[]
  /** Those that were made for them. */
  made: string[]
  /** Not ours to write: a person put our lines into the hooks there. */
  lined: string[]
}

const fileOf = (context: Context) => `${gateDirectory(context)}/${LEDGER}`

const commonDirectory = ({ env, repository }: Context) => realPath(env, repository!.commonDir)

/** Whether it goes along where the repository is copied or moved. */
function goesAlong(commonDir: string, directory: string): boolean {
  const top = commonDir.endsWith('/.git') ? path.dirname(commonDir) : commonDir
  return directory === top || directory.startsWith(`${top}/`)
}

/** @throws CkptError DAMAGED */
export async function readLedger(context: Context): Promise<Ledger> {
  const file = fileOf(context)
  if (!context.env.files.existsSync(file)) return { directories: [], made: [], lined: [] }
  let value: Partial<Ledger>
  try {
    value = JSON.parse(context.env.files.readFileSync(file, 'utf8'))
  } catch (cause) {
    throw new CkptError('DAMAGED', `${file} cannot be read. Nothing was changed.`, {
      cause,
      hints: [`remove ${file}, then: ckpt hooks install`],
    })
  }
  return {
    directories: await ours(context, value.directories),
    made: await ours(context, value.made),
    lined: await ours(context, value.lined, { orNobodys: true }), // as one that all repositories share is
  }
}

/** In a copy of a repository, the linked worktrees of the original are not ours. */
async function ours(context: Context, told: unknown, { orNobodys = false } = {}): Promise<string[]> {
  const commonDir = commonDirectory(context)
  const kept: string[] = []
  for (const one of Array.isArray(told) ? told.filter((each) => typeof each === 'string') : []) {
    const directory = path.resolve(commonDir, one)
    const isOurs = async () => {
      const there = nearestAbove(context.env, directory) // something may have removed it
      const its = await commonDirOf(context.env, there)
      return its === context.repository!.commonDir || (orNobodys && its === null)
    }
    if (goesAlong(commonDir, directory) || (await isOurs())) kept.push(directory)
  }
  return kept
}

export function writeLedger(context: Context, { directories, made, lined }: Ledger): void {
  const commonDir = commonDirectory(context)
  const told = (list: readonly string[]) =>
    list.map((one) => (goesAlong(commonDir, one) ? path.relative(commonDir, one) : one))
  const ledger = { version: 1, directories: told(directories), made: told(made), lined: told(lined) }
  writeFileWhole(context.env, fileOf(context), { content: `${JSON.stringify(ledger)}\n` })
}
