// Bundles the program and the library with esbuild (one chunk per lazily imported command) and emits declarations.
import { execFileSync } from 'node:child_process'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { build } from 'esbuild'

// Built beside it and then put in its place: a program that is being run meanwhile finds its files.
const fresh = `dist.${process.pid}.tmp`
const old = `dist.${process.pid}.old`
await build({
  entryPoints: {
    'cli/main': 'src/cli/main.ts',
    index: 'src/index.ts',
    'claude-agent-sdk': 'src/claude-agent-sdk.ts',
    opencode: 'src/opencode.ts',
  },
  outdir: fresh,
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  chunkNames: 'chunks/[name]-[hash]',
  // CommonJS dependencies that are bundled ask for Node's own modules through require.
  banner: { js: "import{createRequire as ckptRequire}from'node:module';const require=ckptRequire(import.meta.url);" },
})
const tsc = createRequire(import.meta.url)
  .resolve('typescript/package.json')
  .replace('package.json', 'bin/tsc')
execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', `${fresh}/types`], { stdio: 'inherit' })
if (existsSync('dist')) renameSync('dist', old)
renameSync(fresh, 'dist')
rmSync(old, { recursive: true, force: true })
