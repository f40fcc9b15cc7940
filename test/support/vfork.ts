/** What makes starting a program cheap for a process of node; see vfork.c. */
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs'
import path from 'node:path'

const SOURCE = path.join(import.meta.dirname, 'vfork.c')
const FLAGS = ['-O1', '-shared', '-fPIC', '-fno-stack-protector', '-fno-omit-frame-pointer', '-ftls-model=initial-exec']

/** Ends with 0 where node starts programs as ever. */
const TRIAL = "for (let i = 0; i < 20; i++) require('node:child_process').execFileSync('true')"

/**
 * The library to preload; null: there is none for this machine, no compiler, or it does not go with this node. All works
 * without it, and takes longer.
 */
export function vfork(directory: string): string | null {
  if (process.platform !== 'linux' || process.arch !== 'x64') return null
  const hash = createHash('sha256').update(readFileSync(SOURCE)).update(FLAGS.join(' ')).digest('hex')
  const library = path.join(directory, `vfork-${hash.slice(0, 16)}.so`)
  if (existsSync(library)) return library
  const draft = `${library}.${process.pid}`
  try {
    mkdirSync(directory, { recursive: true })
    execFileSync('cc', [...FLAGS, '-o', draft, SOURCE, '-ldl'], { stdio: 'ignore' })
    const env = { ...process.env, LD_PRELOAD: draft }
    execFileSync(process.execPath, ['-e', TRIAL], { env, stdio: 'ignore' })
    renameSync(draft, library)
    return library
  } catch {
    rmSync(draft, { force: true })
    return null
  }
}
