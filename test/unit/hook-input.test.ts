import { PassThrough } from 'node:stream'
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import { readInput } from '../../src/ops/hook-input.ts'

describe("an agent's payload on standard input", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('is not waited on once it is whole, by an agent that keeps its end open', async () => {
    const stdin = new PassThrough()
    stdin.write('{"hook_event_name":"Stop"}\n')
    await expect(Promise.race([readInput(stdin), stillWaits(stdin)])).resolves.toEqual(
      Buffer.from('{"hook_event_name":"Stop"}\n'),
    )
  })

  it.each([
    ['in two pieces', ['{"a":{"b":1}', ',"c":2}'], '{"a":{"b":1},"c":2}'],
    ['that is no JSON', ['{"a":1}}'], '{"a":1}}'],
    ['that is empty', [], ''],
  ])('is read to its end where it comes %s', async (_, pieces, whole) => {
    const stdin = new PassThrough()
    const reading = readInput(stdin)
    for (const piece of pieces) {
      stdin.write(piece)
      await new Promise(process.nextTick)
    }
    stdin.end()
    expect((await reading).toString()).toBe(whole)
  })

  it('is what came of it, where its end does not come in time', async () => {
    const stdin = new PassThrough()
    const reading = readInput(stdin)
    stdin.write('{"hook_event')
    await vi.advanceTimersByTimeAsync(5000)
    expect((await reading).toString()).toBe('{"hook_event')
  })
})

/** Never ends by the clock, which stands still; a stream that is read has handed over what it held long before. */
async function stillWaits(stdin: PassThrough): Promise<string> {
  for (let i = 0; i < 100; i++) await new Promise(setImmediate)
  return `still waits, with ${stdin.readableLength} bytes unread`
}
