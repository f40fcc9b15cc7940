import { isAbsolute } from 'node:path'
import type { Env } from '../../env.ts'

/** Where stores of plain directories lie, and what belongs to no store. A relative path would be another place in each directory. */
export function stateDirectory({ vars, home }: Env): string {
  if (isAbsolute(vars.CKPT_STATE_DIR ?? '')) return vars.CKPT_STATE_DIR!
  const state = vars.XDG_STATE_HOME ?? ''
  return `${isAbsolute(state) ? state : `${home}/.local/state`}/ckpt` // relative: to be ignored (XDG Base Directory Specification)
}
