// Bundles the program and the library with esbuild (one chunk per lazily imported command) and emits declarations.
import { execFileSync } from 'node:child_process'
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, utimesSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import path from 'node:path'
import { type BuildOptions, build, transform } from 'esbuild'

/** When something below a path changed last; a directory changes with the names in it. */
function changedAt(name: string): number {
  const stats = statSync(name)
  const inside = stats.isDirectory() ? readdirSync(name).map((one) => changedAt(path.join(name, one))) : []
  return Math.max(stats.mtimeMs, ...inside)
}

// Several scripts begin with a build; the first one does it. Its time is that of its beginning: what changed since is not in it.
const begun = new Date()
const made = 'dist/cli/main.cjs'
const madeOf = ['src', 'scripts/build.ts', 'package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json']
if (existsSync(made) && statSync(made).mtimeMs > Math.max(...madeOf.map(changedAt))) process.exit()

// Built beside it and then put in its place: a program that is being run meanwhile finds its files.
const fresh = `dist.${process.pid}.tmp`
const old = `dist.${process.pid}.old`
const common: BuildOptions = {
  bundle: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  minifySyntax: true,
  // CommonJS dependencies that are bundled ask for Node's own modules through require. createRequire would want to know
  // where it is, which those do not who bundle the library once more, and their bundlers take it for more than it is.
  banner: { js: 'const require=process.getBuiltinModule;' },
}
await build({
  ...common,
  entryPoints: {
    index: 'src/index.ts',
    'claude-agent-sdk': 'src/claude-agent-sdk.ts',
    opencode: 'src/opencode.ts',
  },
  outdir: fresh,
  splitting: true,
  chunkNames: 'chunks/[name]-[hash]',
})
// The program is CommonJS, one file for each command and what several share: Node resolves and links ES modules for longer
// than most commands run. esbuild splits ES modules only, so that they are translated afterwards.
const program = `${fresh}/cli`
await build({
  ...common,
  banner: {},
  entryPoints: { program: 'src/cli/program.ts', 'hook-log': 'src/ops/hook/log.ts' },
  outdir: program,
  outExtension: { '.js': '.cjs' },
  splitting: true,
  chunkNames: '[name]-[hash]',
})
for (const name of readdirSync(program)) {
  const code = readFileSync(`${program}/${name}`, 'utf8')
  const usesUrl = code.includes('import.meta.url')
  const translated = await transform(code, {
    format: 'cjs',
    platform: 'node',
    target: 'node20.19',
    supported: { 'dynamic-import': false },
    define: { 'import.meta.url': 'moduleUrl' },
    banner: usesUrl ? "const moduleUrl = require('node:url').pathToFileURL(__filename).href;" : '',
  })
  writeFileSync(`${program}/${name}`, translated.code)
}
// What asks the daemon is one file of its own, and CommonJS: an agent waits for it, and each file and each loader is time.
await build({
  ...common,
  banner: {},
  format: 'cjs',
  entryPoints: { 'cli/main': 'src/cli/main.ts' },
  outdir: fresh,
  outExtension: { '.js': '.cjs' },
  supported: { 'dynamic-import': false },
  plugins: [
    {
      name: 'the program apart',
      setup: ({ onResolve }) =>
        onResolve({ filter: /\/(program|hook-log)\.ts$/ }, ({ path: name }) => ({
          path: `./${path.basename(name, '.ts')}.cjs`,
          external: true,
        })),
    },
  ],
})
const tsc = createRequire(import.meta.url)
  .resolve('typescript/package.json')
  .replace('package.json', 'bin/tsc')
execFileSync(process.execPath, [tsc, '-p', 'tsconfig.build.json', '--outDir', `${fresh}/types`], { stdio: 'inherit' })
utimesSync(`${fresh}/cli/main.cjs`, begun, begun)
if (existsSync('dist')) renameSync('dist', old)
renameSync(fresh, 'dist')
rmSync(old, { recursive: true, force: true })
