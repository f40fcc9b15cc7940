// Bundles the program and the library with esbuild (one chunk per lazily imported command) and emits declarations.
import { execFileSync } from 'node:child_process'
import { existsSync, renameSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { type BuildOptions, build } from 'esbuild'

// Built beside it and then put in its place: a program that is being run meanwhile finds its files.
const fresh = `dist.${process.pid}.tmp`
const old = `dist.${process.pid}.old`
const common: BuildOptions = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  // CommonJS dependencies that are bundled ask for Node's own modules through require.
  banner: { js: "import{createRequire as ckptRequire}from'node:module';const require=ckptRequire(import.meta.url);" },
}
await build({
  ...common,
  entryPoints: {
    'cli/program': 'src/cli/program.ts',
    index: 'src/index.ts',
    'claude-agent-sdk': 'src/claude-agent-sdk.ts',
    opencode: 'src/opencode.ts',
  },
  outdir: fresh,
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
})
// What asks the daemon is one file of its own, and CommonJS: an agent waits for it, and each file and each loader is time.
await build({
  ...common,
  banner: {},
  format: 'cjs',
  entryPoints: { 'cli/main': 'src/cli/main.ts' },
  outdir: fresh,
  outExtension: { '.js': '.cjs' },
  plugins: [
    {
      name: 'the program apart',
      setup: ({ onResolve }) =>
        onResolve({ filter: /^\.\/program\.ts$/ }, () => ({ path: './program.js', external: true })),
    },
  ],
})
const tsc = createRequire(import.meta.url)
  .resolve('typescript/package.json')
  .replace('package.json', 'bin/tsc')
execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', `${fresh}/types`], { stdio: 'inherit' })
if (existsSync('dist')) renameSync('dist', old)
renameSync(fresh, 'dist')
rmSync(old, { recursive: true, force: true })
