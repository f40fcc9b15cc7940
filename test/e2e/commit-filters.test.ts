/** `ckpt commit` where git converts files on their way in (gitattributes(5)): what is committed is what git would commit. */
import fs from 'node:fs'
import { expect, test } from 'vitest'
import { type Json, Scratch } from '../support/scratch.ts'

const vars = Object.fromEntries(
  ['AUTHOR', 'COMMITTER'].flatMap((who) => [
    [`GIT_${who}_NAME`, 'A U Thor'],
    [`GIT_${who}_EMAIL`, 'author@example.com'],
  ]),
)
function commit(scratch: Scratch): Json {
  const { code, stdout } = scratch.run(['commit', '--json'], { vars })
  return { code, ...JSON.parse(stdout) }
}

/** A repository with a filter; a script of the turn's is given to `sh`. */
function filtered(files: Record<string, string>, filter: Record<string, string>) {
  const scratch = new Scratch().init({})
  for (const [key, value] of Object.entries(filter)) scratch.git('config', `filter.mine.${key}`, value)
  scratch.write(files)
  scratch.git('add', '-A')
  scratch.git('commit', '-qm', 'first')
  return scratch
}

test.each([
  ['a directory of it', Buffer.from('d\xe9p/key', 'latin1'), 'd\xe9p/.gitattributes', '* filter=mine\n'],
  ['a line end in it', Buffer.from('k\xe9y\n', 'latin1'), '.gitattributes', '*k*y* filter=mine\n'],
])('a name that is no UTF-8 (%s): its filter is applied', (_, name, attributes, rule) => {
  const scratch = filtered({ 'a.txt': 'one\n' }, { clean: 'rev', smudge: 'rev', required: 'true' })
  const at = (path: Buffer) => Buffer.concat([Buffer.from(`${scratch.root}/`), path])
  scratch.turn('Add a key', () => {
    if (name.includes('/')) fs.mkdirSync(at(Buffer.from('d\xe9p', 'latin1')))
    fs.writeFileSync(at(Buffer.from(attributes, 'latin1')), rule)
    fs.writeFileSync(at(name), 'topsecret\n')
  })
  expect(commit(scratch)).toMatchObject({ code: 0, warnings: [] })
  expect(scratch.git('log', '-p', '--text', '--format=')).toContain('+tercespot')
  expect(scratch.git('log', '-p', '--text', '--format=')).not.toContain('topsecret')
  expect(scratch.git('status', '--porcelain')).toBe('')
})

const rot = "tr 'a-z' 'n-za-m'"
test.each<[string, Record<string, string>, Record<string, string>, (scratch: Scratch) => void]>([
  [
    'line ends that are kept from now on',
    { '.gitattributes': '*.txt text eol=crlf\n', 'f.txt': 'a\r\nb\r\nc\r\n' },
    {},
    (scratch) => scratch.write({ '.gitattributes': '*.txt -text\n', 'f.txt': 'a\r\nB\r\nc\r\n' }),
  ],
  [
    'a filter that is dropped',
    { '.gitattributes': 'f.txt filter=mine\n', 'f.txt': 'abc\n' },
    { clean: rot, smudge: rot },
    (scratch) => scratch.write({ '.gitattributes': '', 'f.txt': 'abcd\n' }),
  ],
  [
    'a filter that gives other bytes each time',
    { '.gitattributes': 'f.txt filter=mine\n', 'f.txt': 'abc\n' },
    { clean: 'cat; date +%N', smudge: "sed '$d'" },
    (scratch) => scratch.write({ 'f.txt': 'abcd\n' }),
  ],
])('%s: the turn is committed', (_, files, filter, work) => {
  const scratch = filtered(files, filter)
  scratch.turn('work', () => work(scratch))
  const disk = scratch.manifest()
  const { code, files: told, warnings } = commit(scratch)
  expect([code, told?.map(({ path }: Json) => path).includes('f.txt'), warnings]).toEqual([0, true, []])
  scratch.remove('f.txt')
  scratch.git('checkout', 'HEAD', '--', 'f.txt')
  expect(scratch.manifest()).toEqual(disk)
})

test('a change of the person’s in a file that a filter converts is a conflict all the same', () => {
  const scratch = filtered({ '.gitattributes': 'f.txt filter=mine\n', 'f.txt': 'abc\n' }, { clean: rot, smudge: rot })
  scratch.write({ 'f.txt': 'mine\n' })
  scratch.turn('work', () => scratch.write({ '.gitattributes': '', 'f.txt': 'theirs\n' }))
  expect(commit(scratch)).toMatchObject({ code: 4, error: { paths: ['f.txt'] } })
})

test('attributes that a person changed and did not commit are none of the commit’s', () => {
  const scratch = filtered({ '.gitattributes': 'f.txt filter=mine\n', 'f.txt': 'abc\n' }, { clean: rot, smudge: rot })
  scratch.write({ '.gitattributes': '' })
  scratch.turn('work', () => scratch.write({ 'f.txt': 'abcd\n' }))
  expect(commit(scratch)).toMatchObject({ code: 4, error: { paths: ['f.txt'] } })
})

test('a mode that a person changed is not committed with a file that a filter converts', () => {
  const files = { '.gitattributes': 'f.txt filter=mine\n', 'f.txt': 'abc\n' }
  const scratch = filtered(files, { clean: 'cat; date +%N', smudge: "sed '$d'" })
  fs.chmodSync(scratch.at('f.txt'), 0o755)
  scratch.turn('work', () => scratch.write({ 'f.txt': 'abcd\n' }))
  expect(commit(scratch).code).toBe(0)
  expect(scratch.git('ls-tree', 'HEAD', 'f.txt')).toMatch(/^100644 /)
})

test('a filter that fails and is not required: the file is committed as it is, as git does, with its word', () => {
  const scratch = filtered({ '.gitattributes': '*.bin filter=mine\n' }, { clean: 'false' })
  scratch.turn('work', () => scratch.write({ 'new.bin': 'raw\n' }))
  const { code, warnings } = commit(scratch)
  expect([code, warnings.join()]).toEqual([
    0,
    expect.stringMatching(/^new\.bin is committed as it is on disk: git says error: external filter.*failed/),
  ])
  expect(scratch.git('show', 'HEAD:new.bin')).toBe('raw\n')
})
