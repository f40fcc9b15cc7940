// How wide a text is on a terminal, and where it is cut.
import { expect, test } from 'vitest'
import { fitted } from '../../src/cli/present/turns.ts'
import { clipped, columnsOf } from '../../src/core/columns.ts'

test.each([
  ['plain', 5],
  ['', 0],
  ['\x1b[31mred\x1b[0m', 3],
  ['日本語', 6],
  ['한국어', 6],
  ['ｆｕｌｌ', 8],
  ['é', 1],
  ['e\u0301\u0301', 1],
  ['مرحبا', 5],
  ['🛒', 2],
  ['👩‍👩‍👧‍👦', 2],
  ['❤️', 2],
  ['…—', 2],
])('%j takes %i columns', (text, columns) => {
  expect(columnsOf(text)).toBe(columns)
})

test('what is too wide is cut between characters, and never wider than it may be', () => {
  expect(clipped('日本語', 6)).toBe('日本語')
  expect(clipped('日本語', 5)).toBe('日本…')
  expect(clipped('日本語', 4)).toBe('日…')
  expect(clipped('a👩‍👩‍👧‍👦b', 3)).toBe('a…')
  expect(clipped('e\u0301e\u0301e\u0301', 2)).toBe('e\u0301…')
  expect(clipped('plain', 1)).toBe('…')
})

test('rows of turns fit an ordinary terminal with dates and marks too', () => {
  const rows = ['plain', 'x'.repeat(300)].map((text) => ['  4', '2026-11-25 23:59', '1 file +1 -1', text, 'undone'])
  for (const columns of [56, 64, 80])
    for (const row of fitted(rows, columns)) expect(columnsOf(row.join('  '))).toBeLessThanOrEqual(columns)
})
