/** A patch as git writes it (git-diff(1), "Generating patch text with -p"), read. Pure. */
import { CkptError } from './errors.ts'

/**
 * What a patch says of each file, in the order of the files: two sections where a file became a symlink, or the other way
 * round.
 * @throws CkptError INTERNAL
 */
export function patchSections(patch: string, files: readonly { status: string }[]): string[][] {
  const sections = patch === '' ? [] : patch.split(/(?<=\n)(?=diff --git )/)
  const found = files.map(({ status }) => sections.splice(0, status === 'type' ? 2 : 1))
  if (sections.length > 0 || found.some((own) => own.length === 0))
    throw new CkptError('INTERNAL', 'git gave a patch that cannot be read.')
  return found
}

/** Both contents of a text file from its sections of a patch that leaves no line out. */
export function patchedTexts(sections: readonly string[]): { before: string; after: string } {
  let [before, after] = ['', '']
  for (const section of sections) {
    const start = /^@@ .*\n/m.exec(section)
    if (!start) continue
    let last = ' '
    for (const row of section.slice(start.index + start[0].length, -1).split('\n')) {
      const [mark, line] = [row[0] ?? ' ', `${row.slice(1)}\n`] // diff.suppressBlankEmpty leaves out the space
      if (mark === '\\') {
        if (last !== '+') before = before.slice(0, -1)
        if (last !== '-') after = after.slice(0, -1)
      } else {
        if (mark !== '+') before += line
        if (mark !== '-') after += line
      }
      last = mark
    }
  }
  return { before, after }
}
