// The tree of turns, drawn.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { drawGraph, type GraphNode } from '../../src/core/graph.ts'

const draw = (nodes: readonly GraphNode[]) =>
  `\n${drawGraph(nodes)
    .map(({ lines, id }) => (id === null ? lines : `${lines}  ${id}`))
    .join('\n')}\n`

/** `3>2`: 3 came after 2. Newest first. */
const nodes = (...pairs: string[]): GraphNode[] =>
  pairs.map((pair) => {
    const [id, parent] = pair.split('>')
    return { id: id!, parent: parent ?? null, mark: '*' }
  })

test('nothing, one turn, a line of turns', () => {
  expect(draw([])).toBe('\n\n')
  expect(draw(nodes('1'))).toBe('\n*  1\n')
  expect(draw(nodes('3>2', '2>1', '1'))).toMatchInlineSnapshot(`
    "
    *  3
    *  2
    *  1
    "
  `)
})

test('a fork: the branch that was left, and the one that went on', () => {
  expect(draw(nodes('4>2', '3>2', '2>1', '1'))).toMatchInlineSnapshot(`
    "
    *  4
    | *  3
    |/
    *  2
    *  1
    "
  `)
})

test('a fork of more than one turn on each side', () => {
  expect(draw(nodes('6>5', '5>2', '4>3', '3>2', '2>1', '1'))).toMatchInlineSnapshot(`
    "
    *  6
    *  5
    | *  4
    | *  3
    |/
    *  2
    *  1
    "
  `)
})

test('three branches from one turn', () => {
  expect(draw(nodes('5>1', '4>1', '3>1', '2>1', '1'))).toMatchInlineSnapshot(`
    "
    *  5
    | *  4
    | | *  3
    | | | *  2
    | | |/
    | |/
    |/
    *  1
    "
  `)
})

test('forks within forks', () => {
  expect(draw(nodes('6>4', '5>4', '4>1', '3>2', '2>1', '1'))).toMatchInlineSnapshot(`
    "
    *  6
    | *  5
    |/
    *  4
    | *  3
    | *  2
    |/
    *  1
    "
  `)
})

test('branches that share nothing, as after everything was undone', () => {
  expect(draw(nodes('3', '2>1', '1'))).toMatchInlineSnapshot(`
    "
    *  3
    *  2
    *  1
    "
  `)
})

test('each turn is drawn once, in its order, under its own mark', () => {
  const trees = fc.array(fc.nat(), { minLength: 1, maxLength: 12 }).map((picks) =>
    picks
      .map(
        (pick, i): GraphNode => ({
          id: `t${i}`,
          parent: i === 0 || pick % (i + 1) === i ? null : `t${pick % i}`,
          mark: '*',
        }),
      )
      .reverse(),
  )
  fc.assert(
    fc.property(trees, (all) => {
      const drawn = drawGraph(all)
      expect(drawn.flatMap(({ id }) => id ?? [])).toEqual(all.map(({ id }) => id))
      for (const { lines, id } of drawn) expect(lines.split('*').length - 1).toBe(id === null ? 0 : 1)
    }),
  )
})
