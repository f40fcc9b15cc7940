import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { type Input, inputOf } from '../../src/env.ts'
import { readInput } from '../../src/ops/hook/input.ts'

/** Standard input that holds these at each look; a number: the clock has gone on by so many milliseconds. */
function input(looks: readonly (string | number | null)[]) {
  let [at, time] = [0, 0]
  const stdin: Input = {
    ...inputOf(Buffer.alloc(0)),
    readNow: (buffer: Buffer) => {
      const look = looks[at++]
      if (look === undefined) throw new Error('looked at again')
      if (typeof look === 'string') return buffer.write(look)
      time += look ?? 0
      return look === null ? 0 : null
    },
  }
  return { stdin, monotonic: () => time }
}

describe("an agent's payload on standard input", () => {
  it.each([
    ['in one piece', ['{"hook_event_name":"Stop"}\n']],
    ['after a while', [1, 1, '{"hook_event_name":"Stop"}\n']],
  ])('is not waited on once it is whole, by an agent that keeps its end open: %s', async (_, looks) => {
    expect((await readInput(input(looks))).toString()).toBe('{"hook_event_name":"Stop"}\n')
  })

  it.each([
    ['in two pieces', ['{"a":{"b":1}', 1, ',"c":2}', null], '{"a":{"b":1},"c":2}'],
    ['that is no JSON', ['{"a":1}}', null], '{"a":1}}'],
    ['that is empty', [null], ''],
  ])('is read to its end where it comes %s', async (_, looks, whole) => {
    expect((await readInput(input(looks))).toString()).toBe(whole)
  })

  it('is what came of it, where its end does not come in time', async () => {
    expect((await readInput(input(['{"hook_event', 4999, 1]))).toString()).toBe('{"hook_event')
    expect((await readInput(input(['{"hook', 4999, '_event', 1]))).toString()).toBe('{"hook_event')
  })

  it('is no more than could be one, of what never ends', async () => {
    const stdin: Input = { ...inputOf(Buffer.alloc(0)), readNow: (buffer) => buffer.length }
    expect((await readInput({ stdin, monotonic: () => 0 })).length).toBe(64 * 2 ** 20)
  })

  it('is nothing on a terminal', async () => {
    const { stdin, monotonic } = input([])
    expect((await readInput({ stdin: { ...stdin, isTTY: true }, monotonic })).toString()).toBe('')
  })
})

describe('bytes or a stream as standard input', () => {
  const looks = async (given: Buffer | PassThrough, size: number) => {
    const { readNow } = inputOf(given)
    const pieces: string[] = []
    for (let i = 0; i < 100; i++) {
      const buffer = Buffer.alloc(size)
      const length = readNow(buffer)
      if (length === 0) return pieces
      if (length !== null) pieces.push(buffer.toString('utf8', 0, length))
      await new Promise(setImmediate)
    }
    return [...pieces, 'no end']
  }

  it('comes in pieces as large as the buffer, and ends', async () => {
    expect(await looks(Buffer.from('abcdef'), 4)).toEqual(['abcd', 'ef'])
    const stream = new PassThrough()
    stream.end('abcdef')
    expect(await looks(stream, 4)).toEqual(['abcd', 'ef'])
  })

  it('has no end while the stream is open, and one when it breaks', async () => {
    const open = new PassThrough()
    open.write('abc')
    expect(await looks(open, 4)).toEqual(['abc', 'no end'])
    const broken = new PassThrough()
    broken.write('abc')
    setImmediate(() => broken.destroy(new Error('reset')))
    expect(await looks(broken, 4)).toEqual(['abc'])
  })
})
