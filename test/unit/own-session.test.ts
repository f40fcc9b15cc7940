// Where an undo or redo of a session that a backend keeps itself goes.
import { expect, test } from 'vitest'
import { CkptError } from '../../src/core/errors.ts'
import type { SessionId } from '../../src/core/ids.ts'
import {
  hiddenOwnTurns,
  type OwnSession,
  ownRevert,
  placeAfterRedo,
  placeToUndo,
  visibleOwnTurns,
} from '../../src/core/own-session.ts'
import { ownDetailsJson, ownTurnsJson } from '../../src/results/own-session.ts'

/** Three turns with two steps each, undone from a place. */
function session(boundary: [turn: number, step: number | null] | null): OwnSession {
  const turns = [1, 2, 3].map((number) => ({
    number,
    messageId: `m${number}`,
    text: `prompt ${number}\nwhole`,
    status: 'completed' as const,
    startedAt: `2026-01-01T00:00:0${number}.000Z`,
    endedAt: null,
    steps: [1, 2].map((n) => ({
      number: n,
      id: `p${number}${n}`,
      messageId: `a${number}`,
      callId: `c${number}${n}`,
      tool: 'x',
    })),
  }))
  const at = boundary && { turn: boundary[0], step: boundary[1], messageId: `m${boundary[0]}`, partId: null }
  return { session: 's' as SessionId, agent: 'a', parent: null, state: 'idle', turns, boundary: at, diff: '' }
}

const said = (work: () => unknown): unknown => {
  try {
    const place = work() as { turn?: { number: number }; step?: { number: number } | null; number?: number } | null
    if (place === null) return 'everything'
    return place.turn ? [place.turn.number, place.step?.number ?? null] : (place.number ?? place)
  } catch (error) {
    return error instanceof CkptError ? error.code : error
  }
}

test('an undo goes back from what is visible', () => {
  const undo = (own: OwnSession, choice: Parameters<typeof placeToUndo>[1]) => said(() => placeToUndo(own, choice))
  expect(undo(session(null), {})).toEqual([3, null])
  expect(undo(session(null), { turns: 2 })).toEqual([2, null])
  expect(undo(session(null), { turns: 9 })).toEqual([1, null])
  expect(undo(session([3, null]), {})).toEqual([2, null])
  expect(undo(session([1, null]), {})).toBe('NOTHING_TO_UNDO')
  expect(undo(session(null), { step: true })).toEqual([3, 2])
  expect(undo(session([3, 2]), { step: true })).toEqual([3, 1])
  expect(undo(session([3, 2]), {})).toEqual([3, null])
  expect(undo(session([3, 1]), { step: true })).toBe('NOTHING_TO_UNDO')
  expect(undo(session(null), { to: '2' })).toEqual([2, null])
  expect(undo(session(null), { to: 'm2' })).toEqual([2, null])
  expect(undo(session(null), { to: '2.2' })).toEqual([2, 2])
  expect(undo(session([2, null]), { to: '3' })).toBe('NOT_FOUND')
  expect(undo(session([2, 1]), { to: '2.2' })).toBe('NOT_FOUND')
  expect(undo(session(null), { to: '4' })).toBe('NOT_FOUND')
  expect(undo(session(null), { to: 'abcd' })).toBe('USAGE')
})

test('a redo goes forward from the boundary; what is left of a cut turn counts as one', () => {
  const redo = (own: OwnSession, choice: Parameters<typeof placeAfterRedo>[1]) =>
    said(() => placeAfterRedo(own, choice))
  expect(redo(session(null), {})).toBe('NOTHING_TO_REDO')
  expect(redo(session([1, null]), {})).toBe(2)
  expect(redo(session([1, null]), { turns: 2 })).toBe(3)
  expect(redo(session([1, null]), { turns: 3 })).toBe('everything')
  expect(redo(session([1, null]), { all: true })).toBe('everything')
  expect(redo(session([2, 2]), {})).toBe(3)
  expect(redo(session([3, 2]), {})).toBe('everything')
})

test('a revert goes back, or forward where more is undone', () => {
  const revert = (own: OwnSession, ...to: [string, string?]) => said(() => ownRevert(own, to[0], to[1]))
  expect(revert(session(null), 'm2')).toEqual({ kind: 'undo', to: '2' })
  expect(revert(session([1, null]), 'm3')).toEqual({ kind: 'redo', turns: 2 })
  expect(revert(session([1, 2]), 'm3')).toEqual({ kind: 'redo', turns: 2 })
  expect(revert(session([2, null]), 'm2')).toBe('NOTHING_TO_UNDO')
  for (const part of ['p22', 'c22', '2.2'])
    expect(revert(session(null), 'm2', part)).toEqual({ kind: 'undo', to: '2.2' })
  expect(revert(session(null), 'a2', 'p22')).toEqual({ kind: 'undo', to: '2.2' })
  expect(revert(session([2, 2]), 'm2', 'p22')).toBe('NOTHING_TO_UNDO')
  expect(revert(session(null), 'm9')).toBe('NOT_FOUND')
  expect(revert(session(null), 'm2', 'p9')).toBe('NOT_FOUND')
})

test('what is hidden, in JSON as in itself', () => {
  const own = session([2, 2])
  expect(visibleOwnTurns(own).map(({ number }) => number)).toEqual([1, 2])
  expect(hiddenOwnTurns(own).map(({ number }) => number)).toEqual([3])
  const { turns, boundary } = ownTurnsJson(own, { worktree: '@main', hidden: true })
  expect(turns.map(({ n, hidden, steps }) => [n, hidden, steps.map((step) => step.hidden)])).toEqual([
    [3, true, [true, true]],
    [2, false, [false, true]],
    [1, false, [false, false]],
  ])
  expect(boundary).toEqual({ session: 's', turn: 2, step: '2.2', messageId: 'm2', hiddenTurns: [3], baseline: null })
  expect(ownTurnsJson(own, { worktree: '@main', limit: 1 }).turns.map(({ n }) => n)).toEqual([2])
  expect(ownDetailsJson(own, '@main')).toMatchObject({
    turns: 2,
    revertMessageID: 'm2',
    restoredPrompt: 'prompt 2\nwhole',
    hiddenTurns: [{ n: 3 }],
  })
})
