/** Options to open a worktree, a connection or an agent with: what plain JavaScript gives may be anything. */
import type { Backend } from '../backends/backend.ts'
import { CkptError } from '../core/errors.ts'
import { optionsOf } from './facade.ts'

/** What a value is to be, in words; null: it is. */
export type Check = (value: unknown) => string | null

const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !Array.isArray(value)

export const isText: Check = (value) => (typeof value === 'string' && value !== '' ? null : 'a text that is not empty')
export const isSwitch: Check = (value) => (typeof value === 'boolean' ? null : 'true or false')
export const isCount: Check = (value) =>
  Number.isSafeInteger(value) && (value as number) > 0 ? null : 'a whole number from 1 on'
export const isFunction: Check = (value) => (typeof value === 'function' ? null : 'a function')
export const isOptions: Check = (value) => (isObject(value) ? null : 'an object')
export const areTexts: Check = (value) =>
  Array.isArray(value) && value.every((one) => isText(one) === null) ? null : 'a list of texts that are not empty'
export const isVars: Check = (value) =>
  isObject(value) && Object.values(value).every((one) => one === undefined || typeof one === 'string')
    ? null
    : 'an object of texts'
export const isSignal: Check = () => null // looked at wherever options are
export const areBackends: Check = (value) => {
  if (!Array.isArray(value) || !value.every(isBackend)) return 'a list of backends'
  return new Set(value.map(({ name }) => name)).size === value.length ? null : 'a list of backends with different names'
}

const isBackend = (value: unknown): value is Backend =>
  isObject(value) &&
  isText((value as Partial<Backend>).name) === null &&
  typeof (value as Partial<Backend>).capabilities === 'function'

/** A name that is misspelled is refused: without it another session than the one that is meant may be undone. @throws CkptError USAGE */
export function checkedOptions<T extends object>(given: T, checks: Record<keyof T, Check>): T {
  const options = optionsOf(given)
  for (const [name, value] of Object.entries(options)) {
    if (!Object.hasOwn(checks, name))
      throw new CkptError('USAGE', `There is no option ${JSON.stringify(name)} here. Nothing was changed.`)
    const wanted = value === undefined ? null : checks[name as keyof T](value)
    if (wanted !== null) throw new CkptError('USAGE', `${name} is to be ${wanted}. Nothing was changed.`)
  }
  return options
}
