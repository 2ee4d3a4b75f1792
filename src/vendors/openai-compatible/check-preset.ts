import type { Preset, PresetDialect, PresetEndpoint } from '../shared/preset.ts'

const ID = /^[a-z0-9][a-z0-9-]*$/
const ENDPOINTS: readonly string[] = ['chat', 'embeddings', 'images', 'image-edits'] satisfies PresetEndpoint[]
const RULES: readonly string[] = ['rename', 'values', 'atMost']
const MEMBERS: readonly string[] = [
  'id',
  'name',
  'baseURL',
  'keyVariables',
  'needsKey',
  'serves',
  'byModel',
  'takesImageUrls',
  'asksForUsage',
  'thinksInTags',
  'hasFractionalTimes',
  'errors',
  'embeddings',
  'fields',
  'reasoning',
  'toolChoice',
  'messageMembers',
  'toolIdLength',
  'takesDeveloperRole',
  'prefillMember',
] satisfies (keyof Preset)[]

/**
 * Checks a preset when a vendor is made of it, so that a mistake in one fails then and not at the first request.
 * @throws TypeError naming the member.
 */
export function checkPreset(preset: Preset): void {
  if (typeof preset !== 'object' || preset === null)
    throw new TypeError('openaiCompatible: the preset is not there; see presets of signalbox/presets')
  const fail = (text: string): never => {
    throw new TypeError(`openaiCompatible: the preset ${JSON.stringify(preset.id)}: ${text}`)
  }
  if (typeof preset.id !== 'string' || !ID.test(preset.id)) fail('id must be lower-case letters, digits and dashes')
  for (const name of Object.keys(preset)) if (!MEMBERS.includes(name)) fail(`unknown member ${JSON.stringify(name)}`)
  if (typeof preset.name !== 'string') fail('name must be a text')
  if (!URL.canParse(preset.baseURL)) fail('baseURL must be a URL')
  if (!Array.isArray(preset.keyVariables)) fail('keyVariables must be a list')
  if (typeof preset.needsKey !== 'boolean') fail('needsKey must be true or false')
  if (!Array.isArray(preset.serves) || preset.serves.length === 0) fail('serves must be a list')
  for (const name of preset.serves) if (!ENDPOINTS.includes(name)) fail(`serves names ${JSON.stringify(name)}`)
  checkFields(preset, fail)
  for (const [pattern, dialect] of preset.byModel ?? []) {
    if (!(pattern instanceof RegExp)) fail('byModel must hold pairs of a pattern and deviations')
    checkFields(dialect, fail)
  }
}

function checkFields({ fields, reasoning, toolIdLength }: PresetDialect, fail: (text: string) => never): void {
  for (const [field, rule] of Object.entries(fields ?? {})) {
    const isKnown =
      rule === 'drop' ||
      rule === 'refuse' ||
      (typeof rule === 'object' && Object.keys(rule).length === 1 && RULES.includes(Object.keys(rule)[0]!))
    if (!isKnown) fail(`unknown rule of fields.${field}`)
  }
  if (reasoning !== undefined && !['never', 'tool-calls', 'always'].includes(reasoning.back))
    fail('reasoning.back must be never, tool-calls or always')
  if (toolIdLength !== undefined && !(Number.isInteger(toolIdLength) && toolIdLength > 3))
    fail('toolIdLength must be a whole number above 3')
}
