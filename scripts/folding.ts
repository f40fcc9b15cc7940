// `npm run test:folding`: the tests of file systems that take several spellings for one name, on one. macOS has such a
// file system; elsewhere one is made of test/support/folding.c, with libfuse 3 (Debian: gcc, pkg-config, fuse3, libfuse3-dev).
import { execFileSync, spawnSync } from 'node:child_process'
import fs from 'node:fs'
import os from 'node:os'
import path from 'node:path'

const base = fs.mkdtempSync(path.join(os.tmpdir(), 'ckpt-folding-'))
const [program, behind, mounted] = ['program', 'behind', 'mounted'].map((name) => path.join(base, name)) as [
  string,
  string,
  string,
]
fs.mkdirSync(behind)
fs.mkdirSync(mounted)
let place = base
try {
  if (process.platform === 'linux') {
    const flags = execFileSync('pkg-config', ['--cflags', '--libs', 'fuse3'], { encoding: 'utf8' }).trim().split(/\s+/)
    const source = path.resolve(import.meta.dirname, '../test/support/folding.c')
    execFileSync('gcc', ['-O1', '-D_FILE_OFFSET_BITS=64', source, '-o', program, ...flags], { stdio: 'inherit' })
    execFileSync(program, [behind, mounted, '-s'], { stdio: 'inherit' })
    place = mounted
  }
  const env = { ...process.env, TMPDIR: place, CKPT_FOLDING_REQUIRED: '1' }
  process.exitCode =
    spawnSync('npx', ['vitest', 'run', 'test/regression/spelling.test.ts'], { stdio: 'inherit', env }).status ?? 1
} finally {
  if (place === mounted) spawnSync('fusermount3', ['-u', mounted], { stdio: 'inherit' })
  fs.rmSync(base, { recursive: true, force: true })
}
