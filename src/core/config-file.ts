/** Which files hold configuration of ours. */

/**
 * Any but a `package.json` without our key. By its words alone: one that another program's edit broke, and that has no such
 * key, is nothing to ckpt.
 */
export function holdsConfig(name: string, text: string): boolean {
  if (name !== 'package.json') return true
  if (!text.includes('"checkpoint"')) return false
  let depth = 0
  for (const { 0: word, index } of text.matchAll(/"(?:[^"\\\n]|\\.)*"|[{}[\]]/g)) {
    if (word === '{' || word === '[') depth++
    else if (word === '}' || word === ']') depth--
    else if (depth === 1 && word === '"checkpoint"' && /^\s*:/.test(text.slice(index + word.length))) return true
  }
  return false
}
