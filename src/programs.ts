/** Programs by their names, as a shell would find them. */
import { type Env, errno, statIfThere } from './env.ts'

/** The Node that runs this; where Bun does, the first in PATH that runs ckpt and is no stand-in of Bun's, if there is one. */
export function nodeProgram(env: Pick<Env, 'files' | 'vars'>): string {
  if (!process.versions.bun) return process.execPath
  const { spawnSync } = process.getBuiltinModule('node:child_process')
  const isNode = 'process.exit(process.getBuiltinModule && !process.versions.bun ? 0 : 1)'
  for (const found of programsInPath(env, 'node'))
    if (spawnSync(found, ['-e', isNode], { stdio: 'ignore', timeout: 10_000 }).status === 0) return found
  return process.execPath
}

/** Where a shell would find a program of this name. */
export function programInPath(env: Pick<Env, 'files' | 'vars'>, name: string): string | null {
  for (const found of programsInPath(env, name)) return found
  return null
}

/** Whether execvp(3), begun in `cwd`, would find nothing by this name. False where only the start itself can show it. */
export function isNowhere({ files, vars }: Pick<Env, 'files' | 'vars'>, name: string, cwd: string): boolean {
  const inPath = () => vars.PATH?.split(':').map((directory) => `${directory || cwd}/${name}`) ?? [name]
  const places = name.startsWith('/') ? [name] : name.includes('/') ? [`${cwd}/${name}`] : inPath()
  return places.every((place) => place.startsWith('/') && isNothing(files, place))
}

function isNothing(files: Env['files'], place: string): boolean {
  try {
    return statIfThere(files, place) === null
  } catch (error) {
    if (errno(error) === undefined) throw error
    return false
  }
}

function* programsInPath({ files, vars }: Pick<Env, 'files' | 'vars'>, name: string): Generator<string> {
  for (const directory of (vars.PATH ?? '').split(':')) {
    if (!directory.startsWith('/')) continue
    const file = `${directory}/${name}`
    try {
      files.accessSync(file, 1) // X_OK: access(2)
      if (!files.statSync(file).isFile()) continue
    } catch (error) {
      if (errno(error) === undefined) throw error
      continue
    }
    yield file
  }
}
