// What it costs to begin to watch a tree: chokidar (`bare`), told to look at directories only, or ckpt's watcher (`ours`).
import { watch } from 'chokidar'
import { KernelQueue } from '../src/daemon/kernel-queue.ts'
import { Watcher } from '../src/daemon/watcher.ts'

const [how, root = '.'] = process.argv.slice(2)
const skip = (path: string) => path.endsWith('/.git')
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
} else await new Watcher({ root, skip, queue: new KernelQueue(16384) }).start()
const ms = performance.now() - start
console.log(JSON.stringify({ ms, bytes: process.memoryUsage().rss - before }))
process.exit(0)
