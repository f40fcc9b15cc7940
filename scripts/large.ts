// Fetches what the large tests need, once, and runs them. The bench then finds it, too.
import { execFileSync } from 'node:child_process'
import { fetchKernel, kernelTree } from './large-tree.ts'

fetchKernel()
console.log(`The kernel's source is in ${kernelTree}.`)
execFileSync('npx', ['vitest', 'run', 'test/large'], { stdio: 'inherit' })
