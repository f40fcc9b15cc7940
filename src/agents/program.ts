/** How an agent is to start us, and what of ours lies in the package. */
import { fileURLToPath } from 'node:url'
import { CkptError } from '../core/errors.ts'
import { type Env, errno } from '../env.ts'
import type { Scope } from './agent.ts'

/** A file of the package, from wherever the compiled program lies below it. */
export function packageFile({ files }: Env, name: string): string {
  let at = fileURLToPath(new URL('.', import.meta.url))
  for (let depth = 0; depth < 4; depth++) {
    if (files.existsSync(`${at}package.json`) && files.existsSync(`${at}${name}`)) return `${at}${name}`
    at = at.slice(0, at.slice(0, -1).lastIndexOf('/') + 1)
  }
  throw new CkptError('INTERNAL', `${name} is not in the package of ckpt. Nothing was changed.`, {
    hints: ['install ckpt again'],
  })
}

/**
 * The client that hooks run, as one word of a shell: its name where it is on the path, or where others share the file and
 * have their own; else where it lies.
 */
export function hookWord(env: Env, scope: Scope): string {
  if (scope === 'project' || onPath(env, 'ckpt-hook')) return 'ckpt-hook'
  const path = packageFile(env, 'bin/ckpt-hook')
  return /^[\w./-]+$/.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`
}

/** Whether a shell would find a program of this name. */
export function onPath({ files, vars }: Env, name: string): boolean {
  return (vars.PATH ?? '').split(':').some((directory) => {
    if (!directory.startsWith('/')) return false
    try {
      files.accessSync(`${directory}/${name}`, 1) // X_OK: access(2)
      return true
    } catch (error) {
      if (errno(error) === undefined) throw error
      return false
    }
  })
}

/** Whether a command line is our hook for an agent, however it is started. */
export function isHookOf(agent: string): (command: string) => boolean {
  const pattern = new RegExp(
    `(?:^|[\\s/'"])ckpt(?:\\.js)?['"]?\\s+hook\\s+${agent}(?:\\s|$)|(?:^|[\\s/'"])ckpt-hook['"]?\\s+${agent}(?:\\s|$)`,
  )
  return (command) => pattern.test(command)
}
