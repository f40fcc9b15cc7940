#!/usr/bin/env node
// The compiled program lives in dist/; this file only starts it and hands over the exit code. CommonJS starts faster.

// What an older Node lacks cannot be loaded there. `ckpt-hook` (--shell) may know another one; no other hook fails.
if (!process.getBuiltinModule) {
  const words = process.argv.slice(2)
  const message = `This is Node ${process.versions.node}, and ckpt runs on 20.19 or later (of 22: 22.3). Nothing was changed.`
  const hints = ['nvm use 20   (or whatever chooses your Node; then run the command again)']
  if (words.indexOf('--json') >= 0) {
    const error = { code: 'USAGE', message: message, hints: hints }
    console.log(JSON.stringify({ schemaVersion: 1, ok: false, error: error }))
  } else console.error(`ckpt: ${message}\n  → ${hints[0]}`)
  process.exit(words[0] !== 'hook' ? 2 : words.indexOf('--shell') >= 0 ? 127 : 0)
}

const { hookFailed, main, realEnv } = require('../dist/cli/main.cjs')

// What we write we have to read again, and so do the git processes that we start.
const givenUmask = process.umask()
process.umask(givenUmask & ~0o700)

// Whatever goes wrong in us, an agent's hook does not fail.
if (process.argv[2] === 'hook') {
  const leave = () => process.exit(0)
  process.on('uncaughtException', (error) => hookFailed(realEnv(), error).then(leave, leave))
}

main(process.argv.slice(2), realEnv(givenUmask)).then((code) => {
  process.exitCode = code
})
