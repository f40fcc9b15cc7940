/** The shell texts that the package ships in `hooks/`, filled for one repository. */
import { dirname } from 'node:path'
import { singleQuoted } from '../core/hint-words.ts'
import { pathFromText } from '../core/paths.ts'
import type { Context } from '../ops/worktree/context.ts'
import { directoryOfMain } from '../ops/worktree/place.ts'
import { packageFile } from '../package-file.ts'
import type { Templates } from './hook-file.ts'

/**
 * Bytes as latin1, as hooks are read and written. The gate finds the store beside the repository by itself, wherever that
 * is moved; only one that is elsewhere is written into it.
 */
export function readTemplates({ env, config, repository, place }: Context): Templates {
  const directory = dirname(packageFile(env, 'hooks/gate.sh'))
  const read = (name: string) => env.files.readFileSync(`${directory}/${name}.sh`, 'latin1')
  const store = repository ? directoryOfMain(env, repository, config) : place.directory
  const elsewhere = store === `${repository?.commonDir}/ckpt` ? '' : store
  const gate = read('gate')
    .replace(/^ckpt_store=.*$/m, () => `ckpt_store=${singleQuoted(pathFromText(elsewhere))}`)
    .replace(/^ckpt_push=.*$/m, () => `ckpt_push=${singleQuoted(config.hooks.prePush)}`)
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
