import { Writable } from 'node:stream'

/** A stream that keeps what a command prints. */
export function collector(isTTY: boolean, columns: number) {
  const chunks: Buffer[] = []
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk)
      done()
    },
  })
  return { stream: Object.assign(stream, { isTTY, columns }), text: () => Buffer.concat(chunks).toString('utf8') }
}
