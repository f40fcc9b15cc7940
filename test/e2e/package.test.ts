// The package as others get it: packed, used from a fresh strict TypeScript project, with every example of the docs, and by an agent's hook.
import { execFileSync } from 'node:child_process'
import fs from 'node:fs'
import path from 'node:path'
import { build } from 'esbuild'
import { expect, onTestFinished, test } from 'vitest'
import { sdkDirectory } from '../support/claude-sdk.ts'
import { isThere } from '../support/clients.ts'
import { Scratch } from '../support/scratch.ts'

const root = path.resolve(import.meta.dirname, '../..')
const modules = fs.realpathSync(path.join(root, 'node_modules'))
const examples = fs.readdirSync(path.join(root, 'docs/examples')).sort()
/** They are run by test/backends/chat.test.ts. */
const frontEnd = ['agents.ts', 'chat.ts']

/** What the library's page marks as a type to import. */
function documentedTypes(): string[] {
  const page = fs.readFileSync(path.join(root, 'docs/library.md'), 'utf8')
  const names = [...page.matchAll(/^export (?:interface|type) (\w+)/gm)].map(([, name]) => name!)
  expect(names).toEqual(expect.arrayContaining(['UndoRequest', 'ChangeInfo', 'DaemonState', 'RewindOutcome']))
  return names
}

/** A project with the packed package and nothing else but TypeScript, the types of Node, and what the package asks for. */
function project(scratch: Scratch): string {
  const home = path.join(scratch.base, 'project')
  const own = path.join(home, 'node_modules')
  fs.mkdirSync(own, { recursive: true })
  const packed = execFileSync('npm', ['pack', '--ignore-scripts', '--silent', '--pack-destination', scratch.base], {
    cwd: root,
    encoding: 'utf8',
  }).trim()
  execFileSync('tar', ['-xzf', path.join(scratch.base, packed.split('\n').at(-1)!), '-C', own])
  fs.renameSync(path.join(own, 'package'), path.join(own, 'ckpt'))
  const { dependencies } = JSON.parse(fs.readFileSync(path.join(own, 'ckpt/package.json'), 'utf8'))
  for (const name of [...Object.keys(dependencies), 'typescript', '@types/node']) {
    fs.mkdirSync(path.dirname(path.join(own, name)), { recursive: true })
    fs.symlinkSync(path.join(modules, name), path.join(own, name))
  }
  fs.writeFileSync(path.join(home, 'package.json'), '{"type":"module","private":true}')
  for (const name of examples) fs.copyFileSync(path.join(root, 'docs/examples', name), path.join(home, name))
  for (const name of frontEnd) fs.copyFileSync(path.join(root, 'examples', name), path.join(home, name))
  const compilerOptions = {
    target: 'ES2022',
    module: 'NodeNext',
    strict: true,
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: false,
    types: ['node'],
    outDir: 'out',
    rootDir: '.',
    rewriteRelativeImportExtensions: true,
  }
  fs.writeFileSync(path.join(home, 'documented.ts'), `export type { ${documentedTypes().join(', ')} } from 'ckpt'\n`)
  fs.writeFileSync(
    path.join(home, 'tsconfig.json'),
    JSON.stringify({ compilerOptions, files: [...examples, ...frontEnd, 'documented.ts'] }),
  )
  return home
}

test('a strict TypeScript project compiles against the packed package, and every example runs', () => {
  const scratch = new Scratch().init()
  const home = project(scratch)
  const compile = () =>
    execFileSync(process.execPath, [path.join(modules, 'typescript/bin/tsc'), '-p', home], {
      encoding: 'utf8',
      stdio: 'pipe',
    })
  try {
    compile()
  } catch (error) {
    expect((error as { stdout: string }).stdout).toBe('')
  }
  const said: Record<string, string[]> = {}
  for (const name of examples) {
    const file = path.join(home, 'out', name.replace(/ts$/, 'js'))
    said[name] = execFileSync(process.execPath, [file, scratch.root], {
      encoding: 'utf8',
      env: scratch.vars,
      timeout: 60_000,
    })
      .trim()
      .split('\n')
  }
  // As they stand, by the loader that runs TypeScript on every Node: modules that were CommonJS look otherwise there.
  const own = path.join(scratch.home, '.config/ckpt')
  fs.mkdirSync(own, { recursive: true })
  fs.writeFileSync(path.join(own, '.checkpointrc'), 'snapshot: {include: [.env]}\n')
  const tsx = path.join(modules, 'tsx/dist/cli.mjs')
  expect(
    execFileSync(process.execPath, [tsx, path.join(home, 'undo-and-redo.ts'), new Scratch().init().root], {
      encoding: 'utf8',
      env: scratch.vars,
    }),
  ).toContain('undone: delete hello.txt')
  // The other program: an agent's hook, linked as npm links it, with the daemon that the examples started.
  const hook = path.join(home, 'node_modules/.bin/ckpt-hook')
  fs.mkdirSync(path.dirname(hook), { recursive: true })
  fs.symlinkSync('../ckpt/bin/ckpt-hook', hook)
  const payload = {
    session_id: 'packed',
    cwd: scratch.root,
    hook_event_name: 'UserPromptSubmit',
    prompt: 'from the package',
  }
  const input = JSON.stringify(payload)
  expect(execFileSync(hook, ['claude'], { cwd: scratch.root, env: scratch.vars, input, encoding: 'utf8' })).toBe('')
  expect(scratch.ckpt('list', '--session', 'packed').turns).toMatchObject([{ prompt: 'from the package' }])
  execFileSync(process.execPath, [path.join(home, 'node_modules/ckpt/bin/ckpt.js'), 'daemon', 'stop'], {
    cwd: scratch.root,
    env: scratch.vars,
  })
  expect(said).toEqual({
    'events.ts': ['a turn begins: Tell everybody', 'nothing was missed: true'],
    'snapshots.ts': ['changed: experiment.txt', 'added experiment.txt "maybe\\n"', 'would: delete experiment.txt'],
    'undo-and-redo.ts': [
      'undone: delete hello.txt',
      'put back into the input field: Write hello.txt',
      'refused: NOTHING_TO_REDO',
    ],
  })
  const schema = JSON.parse(fs.readFileSync(path.join(home, 'node_modules/ckpt/docs/protocol.schema.json'), 'utf8'))
  expect(Object.keys(schema.methods)).toContain('sessions.undo')
})

test.skipIf(!isThere('The Claude Agent SDK', sdkDirectory))(
  "the examples of docs/backends.md compile with the SDK's own types (skipped where it is not)",
  () => {
    const home = project(new Scratch())
    const sdk = path.join(home, 'node_modules/@anthropic-ai/claude-agent-sdk')
    fs.mkdirSync(path.dirname(sdk), { recursive: true })
    fs.symlinkSync(sdkDirectory!, sdk)
    const text = fs.readFileSync(path.join(root, 'docs/backends.md'), 'utf8')
    const files = [...text.matchAll(/^```ts\n(.*?)^```$/gms)].map(([, code = ''], i) => {
      fs.writeFileSync(path.join(home, `backends-${i}.ts`), code)
      return `backends-${i}.ts`
    })
    expect(files.length).toBe(2)
    const compilerOptions = { noEmit: true, skipLibCheck: true }
    const config = path.join(home, 'tsconfig.docs.json')
    fs.writeFileSync(config, JSON.stringify({ extends: './tsconfig.json', compilerOptions, files }))
    const compile = () => execFileSync(process.execPath, [path.join(modules, 'typescript/bin/tsc'), '-p', config])
    try {
      compile()
    } catch (error) {
      expect(String((error as { stdout: Buffer }).stdout)).toBe('')
    }
  },
)

/** As an editor's extension ships it: one file, and nothing of ours beside it. */
test.each(['esm', 'cjs'] as const)(
  'bundled into a file of another program (%s) it works, and the daemon is what a shell finds',
  async (format) => {
    const scratch = new Scratch().init()
    const file = path.join(scratch.base, `bundle.${format === 'esm' ? 'mjs' : 'cjs'}`)
    const source = `
    import { connectDaemon, openWorktree } from 'ckpt'
    import { writeFileSync } from 'node:fs'
    async function main() {
      const worktree = await openWorktree(process.argv[2])
      await worktree.mark({ event: 'prompt', session: 's', messageId: 'm' })
      writeFileSync(worktree.root + '/a.txt', 'two')
      await worktree.mark({ event: 'stop', session: 's' })
      const said = [(await worktree.sessions.revert('m')).files]
      try {
        (await connectDaemon(process.argv[2], { start: true })).close()
        said.push('connected')
      } catch ({ code, message, hints }) {
        said.push({ code, message, hints })
      }
      console.log(JSON.stringify(said))
    }
    main()`
    const stdin = { contents: source, resolveDir: root }
    await build({ stdin, bundle: true, platform: 'node', format, outfile: file, logLevel: 'error' })
    const bin = path.join(scratch.base, 'bin')
    const run = () =>
      JSON.parse(
        execFileSync(process.execPath, [file, scratch.root], {
          encoding: 'utf8',
          env: { ...scratch.vars, PATH: `${bin}:${scratch.vars.PATH}` },
        }),
      )
    const files = [{ path: 'a.txt', action: 'write' }]
    expect(run()).toEqual([
      files,
      { code: 'NOT_FOUND', message: expect.stringContaining('not in PATH'), hints: ['npm install -g ckpt'] },
    ])
    fs.mkdirSync(bin)
    fs.symlinkSync(path.join(root, 'bin/ckpt.js'), path.join(bin, 'ckpt'))
    onTestFinished(() => void scratch.run(['daemon', 'stop']))
    expect(run()).toEqual([files, 'connected'])
    expect(scratch.ckpt('daemon', 'status').running).toBe(true)
  },
)
