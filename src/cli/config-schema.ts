import * as z from 'zod'
import { modelDefinitions } from '../catalog/parse-model-definitions.ts'
import { wholePriceFile } from '../catalog/prices/price-file.ts'
import { FURTHER_OPTIONS } from './further-options.ts'
import { SETTINGS } from './settings.ts'
import { vendorsSchema } from './vendor-settings.ts'

/** Names of the file if `--config` is not set. */
export const CONFIG_FILES = ['signalbox.config.json', 'signalbox.config.mjs'] as const

/** Content of the configuration file. Members and descriptions come from the settings. */
export const CONFIG_SCHEMA = z.strictObject({
  $schema: z.string().exactOptional().describe('the schema of this file, for editors'),
  ...membersOf(SETTINGS),
  console: z.boolean().exactOptional().describe('also serve the page for operators at /console/'),
  gateway: FURTHER_OPTIONS.exactOptional().describe('further options of createGateway'),
})

/** Turns `limits.perKey` into a member of the object `limits`. */
function membersOf(settings: typeof SETTINGS): Record<string, z.ZodType> {
  const members: Record<string, z.ZodType> = {}
  const nested: Record<string, Record<string, z.ZodType>> = {}
  for (const { member, schema, text } of settings) {
    if (member === undefined) continue
    const [name = '', inner] = member.split('.')
    const described = (schema as z.ZodString).exactOptional().describe(text)
    if (inner === undefined) members[name] = described
    else nested[name] = { ...nested[name], [inner]: described }
  }
  for (const [name, inner] of Object.entries(nested)) members[name] = z.strictObject(inner).exactOptional()
  return members
}

/** The JSON Schema of the file. `npm run config:schema` writes it into the package. */
export function configJsonSchema(): Record<string, unknown> {
  const plan = z.strictObject({ limits: z.record(z.string(), z.unknown()).exactOptional() })
  // Documents that may also be in separate files are checked when those files are read.
  const rows: Readonly<Record<string, z.ZodType>> = {
    models: z.union([z.string(), z.array(z.string()), modelDefinitions()]),
    vendors: z.union([z.string(), vendorsSchema()]),
    prices: z.union([z.string(), wholePriceFile()]),
    plans: z.union([z.string(), z.record(z.string(), plan)]),
  }
  const shape: Record<string, z.ZodType> = { ...CONFIG_SCHEMA.shape }
  for (const [name, schema] of Object.entries(rows))
    shape[name] = (schema as z.ZodString).exactOptional().describe(shape[name]?.description ?? '')
  const { $schema, ...schema } = z.toJSONSchema(z.strictObject(shape), {
    target: 'draft-7',
    io: 'input',
    reused: 'inline',
  })
  return { $schema, title: 'Configuration of signalbox serve', ...schema }
}
