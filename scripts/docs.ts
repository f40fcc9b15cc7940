// Writes the generated pages of docs/ and the picture of the terminal.
import fs from 'node:fs'
import path from 'node:path'
import { capture, draw } from './picture.ts'
import { pages } from './reference.ts'

const root = path.resolve(import.meta.dirname, '..')
for (const [name, text] of [...(await pages()), ['docs/terminal.svg', draw(await capture())] as const]) {
  fs.writeFileSync(path.join(root, name), text)
  console.log(name)
}
