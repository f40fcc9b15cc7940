import { PassThrough } from 'node:stream'

/** A stream that keeps what a command prints. */
export function collector(isTTY: boolean, columns: number) {
  const chunks: Buffer[] = []
  const stream = Object.assign(new PassThrough(), { isTTY, columns })
  stream.write = (chunk: unknown) => {
    chunks.push(Buffer.from(String(chunk)))
    return true
  }
  return { stream, text: () => Buffer.concat(chunks).toString('utf8') }
}
