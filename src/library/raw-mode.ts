/** The modes of a terminal that questions are asked on: raw, or as they were. */
import { errno } from '../env.ts'

type Keys = NodeJS.ReadStream
type SetRawMode = (isRaw: boolean) => void

/**
 * Raw, or as it was. A terminal that is gone tells that in its own way (SIGHUP), and is no failure of who only asks it back:
 * its stream emits one, and Node's readline, where it reads there, throws that on.
 */
export function setRaw(keys: Keys, isRaw: boolean, set: SetRawMode | undefined = keys.setRawMode): void {
  const hush = () => undefined
  keys.on('error', hush)
  try {
    set?.call(keys, isRaw)
  } catch (error) {
    if (errno(error) !== 'EIO') throw error
  } finally {
    keys.off('error', hush)
  }
}

/** Until the result is called it is set so, by whomever; `own`: as it was set before. Nothing for keys of no terminal. */
export function settingRawBy(keys: Keys, set: (isRaw: boolean, own: SetRawMode) => void): () => void {
  const own = keys.setRawMode?.bind(keys)
  if (!own) return () => undefined
  const before = Object.getOwnPropertyDescriptor(keys, 'setRawMode')
  keys.setRawMode = (isRaw) => {
    set(isRaw, own)
    return keys
  }
  return () => {
    if (before) Object.defineProperty(keys, 'setRawMode', before)
    else Reflect.deleteProperty(keys, 'setRawMode') // then it is the class's again
  }
}

/** Until the result is called nobody who sets it, as Node's readline does, fails for a terminal that is gone. */
export const settingRawWhereThere = (keys: Keys): (() => void) =>
  settingRawBy(keys, (isRaw, own) => setRaw(keys, isRaw, own))
