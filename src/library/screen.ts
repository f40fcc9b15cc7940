/** A stream as questions want it: with a size, which some terminals do not know, and perhaps without colours. */
import type { Writable } from 'node:stream'

/** Of a terminal that does not say. */
export const [COLUMNS, ROWS] = [80, 24]

/** Columns around what is offered in a list: its guide, whose colours the library takes for columns too, and its sign. */
const AROUND = 16

/** How wide what is offered in a list may be without being broken into two lines. */
export const roomIn = (stream: { columns?: number | undefined }): number =>
  Math.max((stream.columns || COLUMNS) - AROUND, 20)

/** What moves the cursor stays. */
export function screen(stream: NodeJS.WritableStream, { colors }: { colors: boolean }): Writable {
  return new Proxy(stream as unknown as Writable, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key, target)
      if (key === 'columns') return value || COLUMNS
      if (key === 'rows') return value || ROWS
      if (key === 'write' && !colors) {
        return (chunk: unknown, ...rest: []) =>
          target.write(typeof chunk === 'string' ? chunk.replace(/\x1b\[[0-9;]*m/g, '') : chunk, ...rest)
      }
      return typeof value === 'function' ? value.bind(target) : value
    },
  })
}
