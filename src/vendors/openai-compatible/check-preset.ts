import { isJsonObject } from '../../core/json.ts'
import { checkMembers, type MemberNames } from '../../core/known-members.ts'
import { ERROR_WORDS_MEMBERS, type ErrorWords } from '../shared/openai-error.ts'
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
import type { VendorFailure } from '../vendor.ts'

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
  'completions',
] satisfies PresetEndpoint[]
/** Members with the same type in every part of a preset. */
const FLAGS: ReadonlySet<string> = new Set([
  ...['takesDeveloperRole', 'takesImageUrls', 'asksForUsage', 'thinksInTags', 'hasFractionalTimes', 'needsKey'],
  ...['answersTools', 'typedBranches'],
  ...['cutsNamed', 'isIgnored', 'evenEmpty', 'keepsAnswers', 'takesTokens', 'givesBase64', 'givesSignedBytes'],
  ...['takesParts', 'isPointwise', 'takesLists', 'answersAsChat'],
])
const COUNTS: ReadonlySet<string> = new Set(['maxInputs', 'maxDocuments', 'maxTokens', 'maxTextTokens', 'maxPictures'])
const TEXTS: ReadonlySet<string> = new Set(['name', 'prefillMember', 'required'])
const LISTS: ReadonlySet<string> = new Set(['keyVariables', 'messageMembers', 'billed'])
const KINDS: readonly unknown[] = [
  'caller',
  'rate_limited',
  'operator',
  'unavailable',
  'timeout',
  'invalid_response',
] satisfies VendorFailure['kind'][]
const CONCERNS: readonly unknown[] = ['key', 'model']
const EMBEDDINGS_MEMBERS = {
  maxInputs: true,
  takesTokens: true,
  givesBase64: true,
  path: true,
  fields: true,
  givesSignedBytes: true,
} satisfies MemberNames<NonNullable<Preset['embeddings']>>
const MODERATIONS_MEMBERS = { takesParts: true } satisfies MemberNames<NonNullable<Preset['moderations']>>
const COMPLETIONS_MEMBERS = {
  path: true,
  models: true,
  maxTokens: true,
  takesLists: true,
  answersAsChat: true,
  fields: true,
} satisfies MemberNames<NonNullable<Preset['completions']>>
const RERANK_MEMBERS = {
  maxDocuments: true,
  maxTokens: true,
  maxTextTokens: true,
  maxPictures: true,
  isPointwise: true,
} satisfies MemberNames<NonNullable<Preset['rerank']>>

/**
 * Checks a preset when a vendor is created, so that a mistake fails then and not at the first request.
 * @throws TypeError naming the member.
 */
export function checkPreset(preset: Preset): void {
  if (typeof preset !== 'object' || preset === null)
    throw new TypeError('openaiCompatible: unknown preset. Import one from signalbox/presets')
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
  checkMembers(preset.completions, COMPLETIONS_MEMBERS, owner, 'completions')
  checkMembers(preset.rerank, RERANK_MEMBERS, owner, 'rerank')
  for (const [part, path] of [
    [preset, ''],
    [preset.errors, 'errors.'],
    [preset.responses, 'responses.'],
    [preset.embeddings, 'embeddings.'],
    [preset.moderations, 'moderations.'],
    [preset.completions, 'completions.'],
    [preset.rerank, 'rerank.'],
  ] as const)
    checkValues(part, path, fail)
  for (const name of ['name', 'keyVariables', 'needsKey'] as const)
    if (preset[name] === undefined) fail(`${name} is missing`)
  checkDialect(preset, owner, '', fail)
  checkErrors(preset.errors ?? {}, fail)
  if (!URL.canParse(preset.baseURL)) fail('baseURL must be a URL')
  for (const name of ['embeddings', 'completions'] as const) {
    const path: unknown = preset[name]?.path
    if (path !== undefined && !(typeof path === 'string' && path.startsWith('/')))
      fail(`${name}.path must begin with a slash`)
  }
  if (preset.completions?.models !== undefined) checkPattern(preset.completions.models, 'completions.models', fail)
  if (!Array.isArray(preset.serves) || preset.serves.length === 0) fail('serves must be a list')
  for (const name of preset.serves) if (!ENDPOINTS.includes(name)) fail(`serves names ${JSON.stringify(name)}`)
  checkFields(preset, fail)
  checkFields({ fields: preset.responses?.fields ?? {} }, (text) => fail(`responses: ${text}`))
  checkFields({ fields: preset.embeddings?.fields ?? {} }, (text) => fail(`embeddings: ${text}`))
  checkFields({ fields: preset.completions?.fields ?? {} }, (text) => fail(`completions: ${text}`))
  if (!isListOf(preset.byModel ?? [], isPair)) fail('byModel must hold pairs of a pattern and deviations')
  for (const [index, [pattern, dialect]] of (preset.byModel ?? []).entries()) {
    checkPattern(pattern, `byModel[${index}]`, fail)
    checkMembers(dialect, PRESET_DIALECT_MEMBERS, owner, `byModel[${index}]`)
    checkValues(dialect, `byModel[${index}].`, fail)
    checkDialect(dialect, owner, `byModel[${index}].`, fail)
    checkFields(dialect, fail)
  }
}

type Fail = (text: string) => never

function checkValues(part: object | undefined, path: string, fail: Fail): void {
  for (const [name, value] of Object.entries(part ?? {})) {
    if (value === undefined) continue
    if (FLAGS.has(name) && typeof value !== 'boolean') fail(`${path}${name} must be true or false`)
    if (COUNTS.has(name) && !(Number.isInteger(value) && value > 0))
      fail(`${path}${name} must be a whole number above 0`)
    if (TEXTS.has(name) && !isText(value)) fail(`${path}${name} must be a string`)
    if (LISTS.has(name) && !isListOf(value, isText)) fail(`${path}${name} must be a list of strings`)
  }
}

function checkDialect({ reasoning, toolChoice }: PresetDialect, owner: string, path: string, fail: Fail): void {
  checkMembers(reasoning, PRESET_REASONING_MEMBERS, owner, `${path}reasoning`)
  checkMembers(toolChoice, PRESET_TOOL_CHOICE_MEMBERS, owner, `${path}toolChoice`)
  checkValues(reasoning, `${path}reasoning.`, fail)
  checkValues(toolChoice, `${path}toolChoice.`, fail)
}

function checkErrors(words: ErrorWords, fail: Fail): void {
  for (const [name, known] of [
    ['codes', KINDS],
    ['statuses', KINDS],
    ['concerns', CONCERNS],
  ] as const)
    for (const [code, meaning] of Object.entries(words[name] ?? {}))
      if (!known.includes(meaning)) fail(`errors.${name}.${code} must be one of ${known.join(', ')}`)
  for (const [name, known] of [
    ['messages', KINDS],
    ['concernMessages', CONCERNS],
  ] as const) {
    const pairs: unknown = words[name] ?? []
    if (!isListOf(pairs, isPair)) fail(`errors.${name} must hold pairs of a pattern and its meaning`)
    for (const [index, [pattern, meaning]] of (pairs as [unknown, unknown][]).entries()) {
      checkPattern(pattern, `errors.${name}[${index}]`, fail)
      if (!known.includes(meaning)) fail(`errors.${name}[${index}] must mean one of ${known.join(', ')}`)
    }
  }
}

/** With these flags, a pattern matches only every other time. */
function checkPattern(pattern: unknown, path: string, fail: Fail): void {
  if (!(pattern instanceof RegExp) || pattern.global || pattern.sticky)
    fail(`${path} must begin with a pattern without the flags g and y`)
}

function checkFields({ fields, reasoning, toolIdLength }: PresetDialect, fail: Fail): void {
  for (const [field, rule] of Object.entries(fields ?? {})) if (!isRule(rule)) fail(`unknown rule of fields.${field}`)
  if (reasoning !== undefined && !['never', 'tool-calls', 'always'].includes(reasoning?.back))
    fail('reasoning.back must be never, tool-calls or always')
  if (reasoning !== undefined && !['reasoning', 'reasoning_content'].includes(reasoning?.as ?? 'reasoning'))
    fail('reasoning.as must be reasoning or reasoning_content')
  if (toolIdLength !== undefined && !(Number.isInteger(toolIdLength) && toolIdLength > 3))
    fail('toolIdLength must be a whole number above 3')
}

function isRule(rule: unknown): boolean {
  if (rule === 'pass' || rule === 'drop' || rule === 'refuse') return true
  if (typeof rule !== 'object' || rule === null) return false
  const [[name, value] = [], ...others] = Object.entries(rule) as [string, unknown][]
  if (others.length > 0) return false
  if (name === 'rename') return isText(value)
  if (name === 'atMost') return Number.isFinite(value)
  if (name === 'thinkingBudget')
    return isJsonObject(value) && Number(value['min']) > 0 && Number(value['max']) >= Number(value['min'])
  return name === 'values' && isJsonObject(value) && Object.values(value).every(isText)
}

function isText(value: unknown): boolean {
  return typeof value === 'string' && value !== ''
}

function isPair(value: unknown): boolean {
  return Array.isArray(value) && value.length === 2 && (value[1] ?? undefined) !== undefined
}

function isListOf(value: unknown, isOne: (one: unknown) => boolean): boolean {
  return Array.isArray(value) && value.every(isOne)
}
