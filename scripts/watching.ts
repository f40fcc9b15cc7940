// What it costs to begin to watch a tree: chokidar alone (`bare`), told to look at directories only, or ckpt's watcher (`ours`).
import { watch } from 'chokidar'
import { Watcher } from '../src/daemon/watcher.ts'
import { realEnv } from '../src/env.ts'

const [how, root = '.'] = process.argv.slice(2)
const skip = (path: string) => path.endsWith('/.git')
await import('../src/daemon/directory-watcher.ts')
global.gc?.()
const before = process.memoryUsage().rss
const start = performance.now()
if (how === 'bare') {
  const watcher = watch(root, {
    ignored: (path, stats) => (stats !== undefined && !stats.isDirectory()) || skip(path),
    ignoreInitial: true,
    followSymlinks: false,
    atomic: false,
  })
  await new Promise<void>((resolve) => watcher.once('ready', () => resolve()))
} else await new Watcher(realEnv(), { root, skip }).start()
const ms = performance.now() - start
console.log(JSON.stringify({ ms, bytes: process.memoryUsage().rss - before }))
process.exit(0)
