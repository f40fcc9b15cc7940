/** The shell texts that the package ships in `hooks/`, filled for one repository. */
import { fileURLToPath } from 'node:url'
import { CkptError } from '../core/errors.ts'
import { pathFromText } from '../core/paths.ts'
import type { Env } from '../env.ts'
import type { Context } from '../ops/worktree/context.ts'
import { directoryOfMain } from '../ops/worktree/place.ts'
import { quoted, type Templates } from './hook-file.ts'

/** `<package>/hooks`, from wherever the compiled program lies below the package. */
function hooksOfPackage({ files }: Env): string {
  let at = fileURLToPath(new URL('.', import.meta.url))
  for (let depth = 0; depth < 4; depth++) {
    if (files.existsSync(`${at}hooks/gate.sh`)) return `${at}hooks`
    at = at.slice(0, at.slice(0, -1).lastIndexOf('/') + 1)
  }
  throw new CkptError('INTERNAL', 'The hooks that ckpt ships are not in its package. Nothing was changed.', {
    hints: ['install ckpt again'],
  })
}

/**
 * Bytes as latin1, as hooks are read and written. The gate finds the store beside the repository by itself, wherever that
 * is moved; only one that is elsewhere is written into it.
 */
export function readTemplates({ env, config, repository, place }: Context): Templates {
  const directory = hooksOfPackage(env)
  const read = (name: string) => env.files.readFileSync(`${directory}/${name}.sh`, 'latin1')
  const store = repository ? directoryOfMain(env, repository, config) : place.directory
  const elsewhere = store === `${repository?.commonDir}/ckpt` ? '' : store
  const gate = read('gate')
    .replace(/^ckpt_store=.*$/m, () => `ckpt_store=${quoted(pathFromText(elsewhere))}`)
    .replace(/^ckpt_push=.*$/m, () => `ckpt_push=${quoted(config.hooks.prePush)}`)
  return {
    gate,
    refuse: read('gate-refuse'),
    more: read('gate-more'),
    own: read('hook'),
    before: read('hook-before'),
    lines: read('hook-lines'),
    linesWithInput: read('hook-lines-input'),
  }
}
