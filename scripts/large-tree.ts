/** The tree that large tests and the bench run on: the Linux kernel's source where it is there, else a made one. */
import { execFileSync } from 'node:child_process'
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { homedir, tmpdir } from 'node:os'
import path from 'node:path'

/** Where the kernel's source is kept; `CKPT_LARGE_TREE` names another place. */
export const kernelTree =
  process.env.CKPT_LARGE_TREE ??
  path.join(process.env.XDG_CACHE_HOME ?? path.join(homedir(), '.cache'), 'ckpt', 'linux')

const git = (cwd: string, ...args: string[]) =>
  execFileSync('git', ['-c', 'user.name=Bench', '-c', 'user.email=bench@example.com', '-c', 'gc.auto=0', ...args], {
    cwd,
    stdio: ['ignore', 'pipe', 'inherit'],
    maxBuffer: 1 << 30,
  })

function commitAll(root: string): void {
  git(root, 'init', '-q', '-b', 'main')
  git(root, 'add', '-A')
  git(root, 'commit', '-q', '-m', 'tree')
  git(root, 'repack', '-adq')
}

/** Lays out Debian's package of the kernel's source (78,000 files) as a repository, once. Needs apt-get and dpkg. */
export function fetchKernel(): void {
  if (existsSync(path.join(kernelTree, '.git'))) return
  const at = mkdtempSync(path.join(tmpdir(), 'ckpt-kernel-'))
  try {
    try {
      execFileSync('apt-get', ['download', '-qq', 'linux-source-6.1'], { cwd: at, stdio: 'inherit' })
    } catch {
      execFileSync('apt-get', ['update', '-qq'], { stdio: 'inherit' }) // the lists were too old, or not there
      execFileSync('apt-get', ['download', '-qq', 'linux-source-6.1'], { cwd: at, stdio: 'inherit' })
    }
    const deb = readdirSync(at).find((name) => name.endsWith('.deb'))!
    execFileSync('dpkg', ['-x', deb, 'x'], { cwd: at })
    execFileSync('tar', ['xf', 'x/usr/src/linux-source-6.1.tar.xz'], { cwd: at })
    const root = path.join(at, 'linux-source-6.1')
    // The package's last rules ignore everything: they go.
    const rules = path.join(root, '.gitignore')
    writeFileSync(rules, readFileSync(rules, 'utf8').replace(/^\/\*$[\s\S]*/m, ''))
    commitAll(root)
    mkdirSync(path.dirname(kernelTree), { recursive: true })
    renameSync(root, kernelTree)
  } finally {
    rmSync(at, { recursive: true, force: true })
  }
}

/** A copy of the kernel tree to work in, or a made tree of 6,000 files in 400 directories. */
export function layOut(root: string): { name: string; files: string[] } {
  if (existsSync(path.join(kernelTree, '.git'))) {
    execFileSync('cp', ['-a', '--reflink=auto', kernelTree, root])
    rmSync(path.join(root, '.git', 'ckpt'), { recursive: true, force: true })
  } else {
    for (let i = 0; i < 6000; i++) {
      const directory = path.join(root, `d${i % 20}`, `e${i % 400}`)
      mkdirSync(directory, { recursive: true })
      writeFileSync(path.join(directory, `f${i}.txt`), `line ${i}\n`.repeat(20 + (i % 200)))
    }
    commitAll(root)
  }
  const all = git(root, 'ls-files', '-z')
    .toString('utf8')
    .split('\0')
    .filter((name) => /\.(c|h|txt)$/.test(name))
  const files = Array.from({ length: 10 }, (_, i) => all[Math.floor(((i + 0.5) * all.length) / 10)]!)
  return { name: existsSync(path.join(kernelTree, '.git')) ? 'the kernel source' : 'a made tree', files }
}
