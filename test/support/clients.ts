/** The agents' own clients, as `npm run test:agents` installs them; tests that need one are skipped where it is not. */
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

/** Outside the project, for they are large. */
export const CACHE =
  process.env.CKPT_AGENTS ||
  path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'ckpt', 'agents')

/** The directory of an installed package; null: it is not there. */
export function clientPackage(name: string, id: string): string | null {
  const directory = path.join(CACHE, name, 'node_modules', id)
  return fs.existsSync(path.join(directory, 'package.json')) ? directory : null
}

/** Says so where a client is missing, and fails where it has to be there. */
export function isThere(client: string, found: string | null | undefined): boolean {
  if (found) return true
  if (process.env.CKPT_AGENTS_REQUIRED === '1') throw new Error(`${client} is not installed`)
  console.log(`${client} is not installed: its tests are skipped (npm run test:agents)`)
  return false
}
