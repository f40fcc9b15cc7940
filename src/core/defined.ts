/** Options as they are handed on: what is undefined is not there. */

export type Defined<T> = { [K in keyof T]: Exclude<T[K], undefined> }

export function defined<T extends object>(fields: T): Defined<T> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as Defined<T>
}
