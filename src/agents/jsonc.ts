/** JSON with comments and trailing commas, as a tree of offsets: an edit touches only what it changes. Pure. */

export interface Range {
  start: number
  /** One past the last character. */
  end: number
}
export interface Property extends Range {
  key: string
  value: Node
}
export type Node = Range &
  (
    | { kind: 'object'; properties: Property[] }
    | { kind: 'array'; items: Node[] }
    | { kind: 'scalar'; value: string | number | boolean | null }
  )

/** @throws SyntaxError, with line and column */
export function parseJsonc(text: string): Node {
  const reader = new Reader(text)
  const node = reader.value()
  reader.blank()
  if (reader.at < text.length) reader.fail('something follows the end')
  return node
}

export function dataOf(node: Node): unknown {
  if (node.kind === 'scalar') return node.value
  if (node.kind === 'array') return node.items.map(dataOf)
  return Object.fromEntries(node.properties.map(({ key, value }) => [key, dataOf(value)]))
}

/** Past white space and comments, from an offset outside of any string. */
function skipBlank(text: string, from: number): number {
  const reader = new Reader(text)
  reader.at = from
  reader.blank()
  return reader.at
}

const DEEPEST = 200

/** White space, or one comment. */
const BLANK = /[ \t\r\n]+|\/\/[^\n]*|\/\*[\s\S]*?\*\//y

/** Numbers, and what JSON has names for. */
const WORD = /-?\d[\d.eE+-]*|true|false|null/y

class Reader {
  at: number
  readonly #text: string
  #depth = 0

  constructor(text: string) {
    this.#text = text
    this.at = text.startsWith('\uFEFF') ? 1 : 0
  }

  fail(why: string): never {
    const before = this.#text.slice(0, this.at)
    const line = before.split('\n').length
    throw new SyntaxError(`${why} at line ${line}, column ${this.at - before.lastIndexOf('\n')}`)
  }

  blank(): void {
    for (;;) {
      BLANK.lastIndex = this.at
      const rest = BLANK.exec(this.#text)
      if (rest) this.at += rest[0].length
      else if (this.#text.startsWith('/*', this.at)) this.fail('a comment has no end')
      else return
    }
  }

  value(): Node {
    this.blank()
    const start = this.at
    const open = this.#text[start]
    if (open !== '{' && open !== '[') {
      const value = this.#scalar()
      return { kind: 'scalar', value, start, end: this.at }
    }
    if (++this.#depth > DEEPEST) this.fail('nested too deeply')
    this.at++
    const node: Node =
      open === '{' ? { kind: 'object', properties: [], start, end: 0 } : { kind: 'array', items: [], start, end: 0 }
    const close = open === '{' ? '}' : ']'
    for (;;) {
      this.blank()
      if (this.#text[this.at] === close) break
      if (node.kind === 'array') node.items.push(this.value())
      else if (node.kind === 'object') this.#property(node.properties)
      this.blank()
      if (this.#text[this.at] === ',') this.at++
      else if (this.#text[this.at] !== close) this.fail(`a comma or ${close} is missing`)
    }
    this.#depth--
    node.end = ++this.at
    return node
  }

  #property(properties: Property[]): void {
    const start = this.at
    const key = this.#scalar()
    if (typeof key !== 'string') this.fail('a key is no string')
    if (properties.some((one) => one.key === key)) this.fail(`the key ${JSON.stringify(key)} is there twice`)
    this.blank()
    if (this.#text[this.at] !== ':') this.fail('a colon is missing')
    this.at++
    const value = this.value()
    properties.push({ key, value, start, end: value.end })
  }

  #scalar(): string | number | boolean | null {
    const written = this.#text[this.at] === '"' ? this.#string() : this.#word()
    if (written === '') this.fail('a value is missing')
    let value: unknown
    try {
      value = JSON.parse(written)
    } catch {
      this.fail('a value is not JSON')
    }
    this.at += written.length
    return value as string | number | boolean | null
  }

  #word(): string {
    WORD.lastIndex = this.at
    return WORD.exec(this.#text)?.[0] ?? ''
  }

  /** With its quotes; empty: it has no end on its line. A pattern for it would need a stack as deep as it is long. */
  #string(): string {
    for (let to = this.at + 1; to < this.#text.length; to++) {
      const character = this.#text[to]
      if (character === '\n') return ''
      if (character === '\\') to++
      else if (character === '"') return this.#text.slice(this.at, to + 1)
    }
    return ''
  }
}

export interface Edit {
  offset: number
  /** How many characters go. */
  remove: number
  insert: string
}

export function applyEdits(text: string, edits: readonly Edit[]): string {
  let out = text
  for (const { offset, remove, insert } of [...edits].sort((a, b) => b.offset - a.offset))
    out = out.slice(0, offset) + insert + out.slice(offset + remove)
  return out
}

/** How the text is laid out: its line ends, and one step of indentation; null: all on one line. */
interface Layout {
  newline: string
  unit: string | null
}

function layoutOf(text: string, root: Node): Layout {
  const newline = text.includes('\r\n') ? '\r\n' : '\n'
  const first = childrenOf(root)[0]
  const indent = first ? indentOf(text, first.start) : null
  if (indent !== null && indent !== '') return { newline, unit: indent }
  return { newline, unit: first && !text.trim().includes('\n') ? null : '  ' }
}

const childrenOf = (node: Node): readonly Range[] =>
  node.kind === 'object' ? node.properties : node.kind === 'array' ? node.items : []

/** The white space before an offset, if nothing else is on its line; else null. */
function indentOf(text: string, offset: number): string | null {
  const line = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset)
  return /^[ \t]*$/.test(line) ? line : null
}

function written(value: unknown, { newline, unit }: Layout, indent: string): string {
  if (unit === null) return JSON.stringify(value)
  return JSON.stringify(value, null, unit).replaceAll('\n', newline + indent)
}

/** Appends an element to an array, or a property to an object, in the way the text is laid out. */
export function append(
  text: string,
  { root, into }: { root: Node; into: Node },
  { key, value }: { key?: string; value: unknown },
): Edit[] {
  const layout = layoutOf(text, root)
  const { newline, unit } = layout
  const label = key === undefined ? '' : `${JSON.stringify(key)}:${unit === null ? '' : ' '}`
  const last = childrenOf(into).at(-1)
  if (last) {
    const indent = indentOf(text, last.start)
    const comma = skipBlank(text, last.end)
    const has = text[comma] === ','
    const from = has ? comma + 1 : last.end
    const at = from + sameLineComment(text.slice(from))
    const own = indent ?? (at > from ? (unit ?? '') : null)
    const space = own === null ? (unit === null ? '' : ' ') : newline + own
    const item = space + label + written(value, own === null ? { newline, unit: null } : layout, own ?? '')
    if (has) return [{ offset: at, remove: 0, insert: `${item},` }] // as they write it
    if (at === from) return [{ offset: at, remove: 0, insert: `,${item}` }]
    return [
      { offset: from, remove: 0, insert: ',' },
      { offset: at, remove: 0, insert: item },
    ]
  }
  if (unit === null) return [{ offset: into.start + 1, remove: 0, insert: label + written(value, layout, '') }]
  const line = text.slice(text.lastIndexOf('\n', into.start) + 1)
  const outer = /^[ \t]*/.exec(line)![0]
  const inside = text.slice(into.start + 1, into.end - 1)
  const at = into.start + 1 + inside.trimEnd().length // after a comment
  const tail = text.slice(at, into.end - 1).includes('\n') ? '' : newline + outer
  const item = `${newline}${outer}${unit}${label}${written(value, layout, outer + unit)}${tail}`
  return [{ offset: at, remove: 0, insert: item }]
}

/** Characters up to the end of a comment that begins on the same line; 0: there is none. */
function sameLineComment(rest: string): number {
  return /^[ \t]*(?:\/\/[^\r\n]*|\/\*[^\n]*?\*\/)/.exec(rest)?.[0].length ?? 0
}

/** Takes an element or a property out, with the comma and the white space that came with it. */
export function take(text: string, from: Node, index: number): Edit[] {
  const children = childrenOf(from)
  const one = children[index]!
  const before = children[index - 1]
  const above = text.slice(0, one.start).trimEnd().length
  const commented = endsInLineComment(text.slice(before?.end ?? from.start + 1, above))
  // The line break that ends a comment goes only if another one follows.
  const startFor = (end: number) => (commented && !/^[ \t]*(\r?\n|$)/.test(text.slice(end)) ? one.start : above)
  let { start, end } = { start: startFor(one.end), end: one.end }
  const after = skipBlank(text, one.end)
  if (text[after] === ',') {
    // A comment between the two stays.
    if (after > one.end) return [cut(start, one.end), cut(after, after + 1)]
    end = after + 1
    start = startFor(end)
  } else if (before) {
    const comma = skipBlank(text, before.end)
    if (comma < above - 1) return [cut(comma, comma + 1), cut(start, end)]
    start = Math.min(start, comma)
  }
  if (children.length === 1) {
    // What we wrote before the closing bracket goes too.
    const space = /^[ \t\r\n]*/.exec(text.slice(end))![0].length
    if (end + space === from.end - 1 && text.slice(from.start + 1, start).trim() === '')
      return [cut(from.start + 1, from.end - 1)]
  }
  return [cut(start, end)]
}

/** Of white space, commas and comments: whether the last of them is a comment that a line break ends. */
function endsInLineComment(between: string): boolean {
  return /\/\/[^\n]*$/.test(between.replaceAll(/\/\*[\s\S]*?\*\/|\/\/[^\n]*\n/g, ' '))
}

const cut = (start: number, end: number): Edit => ({ offset: start, remove: end - start, insert: '' })
