/** The tree of a session's turns as lines of text, newest first, in the way of `git log --graph`. */
export interface GraphNode {
  id: string
  parent: string | null
  mark: string
}

export interface GraphLine {
  /** `* `, `| * `, `|/ ` and the like. */
  lines: string
  /** The node drawn on this line; null for a line that only joins. */
  id: string | null
}

/** `nodes` newest first; a node stands before its parent. */
export function drawGraph(nodes: readonly GraphNode[]): GraphLine[] {
  const drawn: GraphLine[] = []
  /** What each column waits for. */
  const columns: string[] = []
  for (const { id, parent, mark } of nodes) {
    let at = columns.indexOf(id)
    for (let other = columns.lastIndexOf(id); at >= 0 && other > at; other = columns.lastIndexOf(id)) {
      drawn.push({ lines: joinLine(columns.length, other), id: null })
      columns.splice(other, 1)
    }
    if (at < 0) {
      at = columns.length
      columns.push(id)
    }
    drawn.push({ lines: columns.map((_, i) => (i === at ? mark : '|')).join(' '), id })
    if (parent === null) columns.splice(at, 1)
    else columns[at] = parent
  }
  return drawn
}

/** Column `from` joins the one to its left. */
function joinLine(count: number, from: number): string {
  const cells = Array.from({ length: count }, (_, i) => (i < from ? '|' : i === from ? '' : '/'))
  const left = cells.slice(0, from).join(' ')
  const right = Array.from({ length: count - from - 1 }, () => ' /').join('')
  return `${left}/${right}`
}
