// Snapshots without any agent. Run it with the directory of a worktree.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openWorktree } from 'ckpt'

const { root, snapshots } = await openWorktree(process.argv[2] ?? '.')
const { checkpoint } = await snapshots.track({ message: 'before the experiment' })
if (!checkpoint) throw new Error('checkpoints are switched off here')
writeFileSync(join(root, 'experiment.txt'), 'maybe\n')

const patch = await snapshots.patch(checkpoint.id)
console.log('changed:', patch.files.map(({ path }) => path).join(', '))
const { files } = await snapshots.diffFull(checkpoint.id, 'worktree')
for (const { path, status, after } of files) console.log(status, path, JSON.stringify(after))
const plan = await snapshots.revert(patch, { force: true, dryRun: true })
console.log('would:', plan.files.map(({ path, action }) => `${action} ${path}`).join(', '))
await snapshots.revert(patch, { force: true })
