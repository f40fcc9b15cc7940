/** How paths went through a row of trees: each tree is read once for all of them, and only where it differs from the one before. */
import type { Oid } from '../../core/ids.ts'
import type { TreeEntry } from '../../core/tree-object.ts'
import type { FileEntry, Trees } from '../../git/trees.ts'

/** A path stays as it is from one place in the row to another, both included. */
export interface Run {
  from: number
  to: number
  /** Null: no file is there. */
  entry: FileEntry | null
}

/** Paths by their parts: what is asked for at a name, and below it. */
interface Node {
  runs: Run[] | null
  below: Below
}
type Below = Map<string, Node>

const NOTHING: ReadonlyMap<string, TreeEntry> = new Map()

/** For each path its runs, oldest first: together they are the whole row. */
export async function readRuns(
  trees: Trees,
  row: readonly Oid[],
  paths: Iterable<string>,
): Promise<ReadonlyMap<string, readonly Run[]>> {
  const last = row.length - 1
  const found = new Map([...paths].map((path): [string, Run[]] => [path, [{ from: 0, to: last, entry: null }]]))
  const below: Below = new Map()
  for (const [path, runs] of found) nodeOf(below, path).runs = runs
  const entriesOf = (oid: Oid | null) => (oid === null ? NOTHING : trees.entries(oid))
  const walk = async (nodes: Below, [before, after]: readonly [Oid | null, Oid | null], at: number) => {
    if (nodes.size === 0 || before === after) return
    const [one, two] = [await entriesOf(before), await entriesOf(after)]
    for (const [name, node] of nodes) {
      const [was, is] = [one.get(name), two.get(name)]
      if (was?.oid === is?.oid && was?.mode === is?.mode) continue
      if (node.runs) goOn(node.runs, fileOf(is), at)
      await walk(node.below, [treeOf(was), treeOf(is)], at)
    }
  }
  for (const [at, tree] of row.entries()) await walk(below, [row[at - 1] ?? null, tree], at)
  return found
}

function nodeOf(nodes: Below, path: string): Node {
  const [name = '', ...rest] = path.split('/')
  const node = nodes.get(name) ?? { runs: null, below: new Map() }
  nodes.set(name, node)
  return rest.length === 0 ? node : nodeOf(node.below, rest.join('/'))
}

/** From this place on the path is another. */
function goOn(runs: Run[], entry: FileEntry | null, at: number): void {
  const run = runs.at(-1)!
  if (run.entry === entry) return // nothing, as before
  if (run.from === at) run.entry = entry
  else {
    runs.push({ from: at, to: run.to, entry })
    run.to = at - 1
  }
}

const fileOf = (entry: TreeEntry | undefined): FileEntry | null =>
  entry && entry.mode !== '40000' ? (entry as FileEntry) : null

const treeOf = (entry: TreeEntry | undefined): Oid | null => (entry?.mode === '40000' ? entry.oid : null)
