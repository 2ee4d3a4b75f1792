import { checkMembers, type MemberNames } from '../../core/known-members.ts'
import { ERROR_WORDS_MEMBERS } from '../shared/openai-error.ts'
import {
  PRESET_DIALECT_MEMBERS,
  PRESET_MEMBERS,
  PRESET_REASONING_MEMBERS,
  PRESET_RESPONSES_MEMBERS,
  PRESET_TOOL_CHOICE_MEMBERS,
  type Preset,
  type PresetDialect,
  type PresetEndpoint,
} from '../shared/preset.ts'

const ID = /^[a-z0-9][a-z0-9-]*$/
const ENDPOINTS: readonly string[] = [
  'chat',
  'responses',
  'embeddings',
  'rerank',
  'images',
  'image-edits',
  'transcriptions',
  'moderations',
] satisfies PresetEndpoint[]
const RULES: readonly string[] = ['rename', 'values', 'atMost']
const EMBEDDINGS_MEMBERS = {
  maxInputs: true,
  takesTokens: true,
  givesBase64: true,
  path: true,
  fields: true,
  givesSignedBytes: true,
} satisfies MemberNames<NonNullable<Preset['embeddings']>>
const MODERATIONS_MEMBERS = { takesParts: true } satisfies MemberNames<NonNullable<Preset['moderations']>>
const RERANK_MEMBERS = {
  maxDocuments: true,
  maxTokens: true,
  maxTextTokens: true,
  maxPictures: true,
  isPointwise: true,
} satisfies MemberNames<NonNullable<Preset['rerank']>>

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
  const owner = `openaiCompatible: the preset ${JSON.stringify(preset.id)}`
  checkMembers(preset, PRESET_MEMBERS, owner)
  checkMembers(preset.errors, ERROR_WORDS_MEMBERS, owner, 'errors')
  checkMembers(preset.responses, PRESET_RESPONSES_MEMBERS, owner, 'responses')
  checkMembers(preset.embeddings, EMBEDDINGS_MEMBERS, owner, 'embeddings')
  checkMembers(preset.moderations, MODERATIONS_MEMBERS, owner, 'moderations')
  checkMembers(preset.rerank, RERANK_MEMBERS, owner, 'rerank')
  checkDialect(preset, owner, '')
  if (typeof preset.name !== 'string') fail('name must be a text')
  if (!URL.canParse(preset.baseURL)) fail('baseURL must be a URL')
  if (!Array.isArray(preset.keyVariables)) fail('keyVariables must be a list')
  if (typeof preset.needsKey !== 'boolean') fail('needsKey must be true or false')
  if (!Array.isArray(preset.serves) || preset.serves.length === 0) fail('serves must be a list')
  for (const name of preset.serves) if (!ENDPOINTS.includes(name)) fail(`serves names ${JSON.stringify(name)}`)
  checkFields(preset, fail)
  checkFields({ fields: preset.responses?.fields ?? {} }, (text) => fail(`responses: ${text}`))
  checkFields({ fields: preset.embeddings?.fields ?? {} }, (text) => fail(`embeddings: ${text}`))
  for (const [index, [pattern, dialect]] of (preset.byModel ?? []).entries()) {
    if (!(pattern instanceof RegExp)) fail('byModel must hold pairs of a pattern and deviations')
    checkMembers(dialect, PRESET_DIALECT_MEMBERS, owner, `byModel[${index}]`)
    checkDialect(dialect, owner, `byModel[${index}].`)
    checkFields(dialect, fail)
  }
}

function checkDialect({ reasoning, toolChoice }: PresetDialect, owner: string, path: string): void {
  checkMembers(reasoning, PRESET_REASONING_MEMBERS, owner, `${path}reasoning`)
  checkMembers(toolChoice, PRESET_TOOL_CHOICE_MEMBERS, owner, `${path}toolChoice`)
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
