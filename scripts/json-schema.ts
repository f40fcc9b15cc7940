/** The JSON Schema of a configuration file, for editors: what the program's own schema takes, with words and defaults. */
import { z } from 'zod'
import { configSchema } from '../src/config/schema.ts'

type Node = z.core.JSONSchema.BaseSchema

interface Told {
  /** What each dotted key is for. */
  words: Readonly<Record<string, string>>
  /** Its default, as one writes it in YAML. */
  defaultOf: (key: string) => string
}

const written = (text: string): Node['default'] => {
  try {
    return JSON.parse(text) as Node['default']
  } catch {
    return text // a size, a time or a word
  }
}

export function jsonSchema({ words, defaultOf }: Told): string {
  // `input`: what a file may say, before sizes and times are numbers.
  const schema = z.toJSONSchema(configSchema, { io: 'input', target: 'draft-07' }) as Node
  const describe = (node: Node, prefix: string): void => {
    for (const [name, child] of Object.entries(node.properties ?? {})) {
      const [key, field] = [`${prefix}${name}`, child as Node]
      if (field.properties) describe(field, `${key}.`)
      else if (words[key] !== undefined)
        Object.assign(field, { description: words[key], default: written(defaultOf(key)) })
    }
  }
  describe(schema, '')
  const { $schema, ...rest } = schema
  const titled = {
    $schema,
    title: 'Configuration of ckpt',
    description: '.checkpointrc, .checkpointrc.json, .checkpointrc.yaml, or "checkpoint" in package.json',
    ...rest,
  }
  return `${JSON.stringify(titled, null, 2)}\n`
}
