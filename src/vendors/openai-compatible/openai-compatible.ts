import type { ModelDefinition } from '../../catalog/model.ts'
import { isJsonObject } from '../../core/json.ts'
import { checkMembers, memberNames } from '../../core/known-members.ts'
import { chatByResponses, translatedChat } from '../shared/chat-by-responses.ts'
import { OPENAI_PRICE_MEMBERS } from '../shared/openai-abilities.ts'
import { openaiChat } from '../shared/openai-chat.ts'
import { type AnswerRepair, activeRules, PASS_ALL, plainMessages } from '../shared/openai-chat-dialect.ts'
import { openaiCompletions } from '../shared/openai-completions.ts'
import { openaiEmbeddings } from '../shared/openai-embeddings.ts'
import { ERROR_WORDS_MEMBERS, type ErrorWords, errorReader } from '../shared/openai-error.ts'
import { openaiImageEdits, openaiImages } from '../shared/openai-images.ts'
import { openaiModerations } from '../shared/openai-moderations.ts'
import { type OpenAIResponsesDialect, openaiResponses } from '../shared/openai-responses.ts'
import { openaiTranscriptions } from '../shared/openai-transcriptions.ts'
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
import { ownsEncryptedReasoning, reasoningTags } from '../shared/reasoning.ts'
import { compatibleRerank } from '../shared/rerank.ts'
import {
  commonParts,
  type SafetyIdentifierOptions,
  type VendorObjectOptions,
  vendorAddress,
} from '../shared/vendor-options.ts'
import type { ApiKeys, NamedVendorOptions, Vendor, VendorFailure, VendorOptions } from '../vendor.ts'
import {
  completionsRules,
  droppedFields,
  embeddingsRules,
  presetRules,
  replaysReasoning,
  responsesRules,
} from './preset-fields.ts'

/** Options of {@link openaiCompatible}. */
export interface OpenAICompatibleOptions extends VendorOptions, VendorObjectOptions, SafetyIdentifierOptions {
  /** Id of the vendor: lower-case letters, digits and dashes. */
  readonly id: string
  /** Display name. Default: the id. */
  readonly displayName?: string | undefined
  /**
   * As OpenAI's SDKs take it: `https://host.example/v1`. `/chat/completions`, `/embeddings`, `/rerank`, `/images/generations`,
   * `/images/edits`, `/audio/transcriptions`, `/moderations` and `/completions` are appended.
   */
  readonly baseURL: string
  /** One or several API keys. If omitted, no credential is sent. */
  readonly apiKey?: ApiKeys
  /** Models that the vendor serves. Rows of kind `image` need `protocol: 'generations'`. */
  readonly models: readonly Omit<ModelDefinition, 'vendor'>[]
  /** Maximum texts per embedding call. Default 2,048. */
  readonly maxEmbeddingInputs?: number | undefined
  /** Whether to send reasoning and vendor state of earlier answers back, for servers that require it. Default false. */
  readonly replaysExtensions?: boolean | undefined
  /**
   * Whether the server also has `/responses`. Default false: such requests are translated into chat completions. Models with
   * `protocol: 'responses'` also use it for chats and Messages.
   */
  readonly responses?: boolean | undefined
  /** Whether the server may fetch addresses of a request. Default true: private addresses are rejected. */
  readonly fetchesUrls?: boolean | undefined
}

const OPENAI_COMPATIBLE_OPTIONS = memberNames<Omit<OpenAICompatibleOptions, keyof VendorOptions>>()(
  'id displayName baseURL models maxEmbeddingInputs replaysExtensions responses fetchesUrls allowVendorObjects',
  'safetyIdentifierKey',
)

/** Options of {@link openaiCompatible} with a preset. Each replaces the value of the preset. */
export interface PresetOptions extends NamedVendorOptions, VendorObjectOptions, SafetyIdentifierOptions {
  /** Base URL with the version. Defaults to that of the preset. */
  readonly baseURL?: string | undefined
  /** Account at the vendor, if its base URL names one. */
  readonly account?: string | undefined
  /** Models that the vendor serves. */
  readonly models?: readonly Omit<ModelDefinition, 'vendor'>[] | undefined
  /** Maximum texts per embedding call. */
  readonly maxEmbeddingInputs?: number | undefined
  /** Whether the server has `/responses`. Defaults to the preset. If false, such requests are translated into chat completions. */
  readonly responses?: boolean | undefined
  /** Whether the server may fetch addresses of a request. Default true: private addresses are rejected. */
  readonly fetchesUrls?: boolean | undefined
}

const PRESET_OPTIONS = memberNames<Omit<PresetOptions, keyof VendorOptions>>()(
  'id displayName baseURL account models maxEmbeddingInputs responses fetchesUrls allowVendorObjects',
  'safetyIdentifierKey',
)

const ID = /^[a-z0-9][a-z0-9-]*$/

/**
 * Creates the vendor of a server with OpenAI's dialect of chat completions, embeddings, images, transcription and moderations, and
 * Cohere's of reranking: one of a preset, or any other.
 * @throws TypeError if the id or `baseURL` is malformed, an option of a preset is unknown, or `account` is missing although the
 *   preset needs it.
 */
export function openaiCompatible(preset: Preset, options?: PresetOptions): Vendor
export function openaiCompatible(options: OpenAICompatibleOptions): Vendor
export function openaiCompatible(given: Preset | OpenAICompatibleOptions, options: PresetOptions = {}): Vendor {
  return isPreset(given) ? presetVendor(given, options) : plainVendor(given)
}

/** Servers pass marks on to Claude, and few of them report lifetimes. Other models have no marks. */
function cachesAsMarked(upstream: string): boolean {
  return /\bclaude\b/i.test(upstream)
}

function isPreset(given: Preset | OpenAICompatibleOptions | undefined): given is Preset {
  return typeof given !== 'object' || given === null || 'serves' in given
}

function plainVendor(options: OpenAICompatibleOptions): Vendor {
  const { id } = options ?? {}
  const common = commonParts('openaiCompatible', options, OPENAI_COMPATIBLE_OPTIONS, { id, displayName: id })
  checkId(id)
  checkInputs(options.maxEmbeddingInputs)
  if (!Array.isArray(options.models)) throw new TypeError('openaiCompatible: models must be a list')
  const { origin, prefix } = vendorAddress(options.baseURL)
  const errors = errorReader({}, common.apiKeys)
  const replays = options.replaysExtensions === true
  const rules = activeRules(replays ? PASS_ALL : { ...PASS_ALL, messages: plainMessages })
  const { fromStream: streamFailure } = errors
  const chat = openaiChat({
    path: `${prefix}/chat/completions`,
    rulesFor: () => rules,
    replaysReasoning: () => replays,
    abilities: ({ efforts }) => ({ efforts }),
    systemFirst: true,
    cachesAsMarked,
    streamFailure,
  })
  const responses: OpenAIResponsesDialect = {
    path: `${prefix}/responses`,
    cachesAsMarked,
    streamFailure,
  }
  return {
    ...common,
    origin,
    priceMembers: OPENAI_PRICE_MEMBERS,
    // An empty key counts as one key: the server needs no credential, only its address.
    ...(common.apiKeys.length === 0 ? { apiKeys: [''] } : {}),
    configuredBy: `openaiCompatible({ id: '${id}', apiKey })`,
    ...(options.fetchesUrls === false ? { fetchesUrls: false } : {}),
    ...(options.responses === true
      ? {
          chat: chatByResponses(chat, responses),
          responses: openaiResponses(responses),
          ownsReasoning: ownsEncryptedReasoning,
        }
      : { chat }),
    embeddings: openaiEmbeddings({
      path: `${prefix}/embeddings`,
      maxInputs: options.maxEmbeddingInputs ?? 2048,
      takesTokens: true,
      rules: {},
      givesBase64: true,
      prefersBase64: false,
    }),
    rerank: compatibleRerank(`${prefix}/rerank`),
    images: {
      generations: openaiImages({ path: `${prefix}/images/generations`, streamFailure: errors.fromStream }),
    },
    imageEdits: openaiImageEdits({ path: `${prefix}/images/edits`, streamFailure: errors.fromStream }),
    transcription: openaiTranscriptions({ path: `${prefix}/audio/transcriptions`, streamFailure: errors.fromStream }),
    moderations: openaiModerations({ path: `${prefix}/moderations` }),
    completions: openaiCompletions({ path: `${prefix}/completions`, streamFailure }),
    errorFrom: errors.fromAnswer,
  }
}

function presetVendor(preset: Preset, options: PresetOptions): Vendor {
  checkPreset(preset)
  const usual = { id: preset.id, displayName: preset.name }
  const common = commonParts(`openaiCompatible(presets.${preset.id})`, options, PRESET_OPTIONS, usual)
  checkId(common.id)
  checkInputs(options.maxEmbeddingInputs)
  const { origin, prefix } = vendorAddress(options.baseURL ?? presetAddress(preset, options.account))
  const errors = errorReader(preset.errors ?? {}, common.apiKeys)
  const { embeddings = {}, serves } = preset
  const images = { path: `${prefix}/images/generations`, streamFailure: errors.fromStream }
  const responses: OpenAIResponsesDialect = {
    path: `${prefix}/responses`,
    rules: responsesRules(preset),
    keepsAnswers: preset.responses?.keepsAnswers === true,
    countsTokens: false,
    takesImageUrls: preset.takesImageUrls,
    cachesAsMarked,
    streamFailure: errors.fromStream,
  }
  const servesResponses = options.responses ?? serves.includes('responses')
  const hasResponsesOnly = servesResponses && !serves.includes('chat')
  return {
    ...common,
    origin,
    priceMembers: OPENAI_PRICE_MEMBERS,
    ...(common.apiKeys.length === 0 && !preset.needsKey ? { apiKeys: [''] } : {}),
    ...(preset.needsKey ? {} : { hasLongSilences: true }),
    configuredBy: [...preset.keyVariables, `openaiCompatible(presets.${preset.id}, { apiKey })`].join(' or '),
    ...(options.fetchesUrls === false ? { fetchesUrls: false } : {}),
    catalogId: preset.id,
    // A server without keys serves what its operator has loaded. A vendor with named models serves only those and the catalog's.
    claims: options.models === undefined ? preset.claims : undefined,
    passUnknownModels: options.passUnknownModels ?? (!preset.needsKey && options.models === undefined),
    ...(serves.includes('chat')
      ? {
          chat: {
            ...openaiChat({
              path: `${prefix}/chat/completions`,
              rulesFor: presetRules(preset),
              replaysReasoning: replaysReasoning(preset),
              abilities: ({ efforts }) => ({ efforts }),
              answerRepair: answerRepairOf(preset),
              asksForUsage: preset.asksForUsage,
              takesImageUrls: preset.takesImageUrls,
              systemFirst: true,
              cachesAsMarked,
              streamFailure: errors.fromStream,
            }),
            leavesOut: droppedFields(preset),
          },
        }
      : {}),
    ...(hasResponsesOnly ? { chat: translatedChat(responses) } : {}),
    ...(servesResponses ? { responses: openaiResponses(responses) } : {}),
    ...(serves.includes('embeddings')
      ? {
          embeddings: openaiEmbeddings({
            path: `${prefix}${embeddings.path ?? '/embeddings'}`,
            maxInputs: options.maxEmbeddingInputs ?? embeddings.maxInputs ?? 2048,
            takesTokens: embeddings.takesTokens ?? true,
            rules: embeddingsRules(preset),
            givesBase64: embeddings.givesBase64 ?? true,
            givesSignedBytes: embeddings.givesSignedBytes,
            prefersBase64: false,
          }),
        }
      : {}),
    ...(serves.includes('rerank') ? { rerank: compatibleRerank(`${prefix}/rerank`, preset.rerank) } : {}),
    ...(serves.includes('images') ? { images: { generations: openaiImages(images) } } : {}),
    ...(serves.includes('image-edits')
      ? { imageEdits: openaiImageEdits({ ...images, path: `${prefix}/images/edits` }) }
      : {}),
    ...(serves.includes('transcriptions')
      ? {
          transcription: openaiTranscriptions({
            path: `${prefix}/audio/transcriptions`,
            streamFailure: errors.fromStream,
          }),
        }
      : {}),
    ...(serves.includes('moderations')
      ? {
          moderations: openaiModerations({
            path: `${prefix}/moderations`,
            takesParts: preset.moderations?.takesParts,
          }),
        }
      : {}),
    ...(serves.includes('completions')
      ? {
          completions: openaiCompletions({
            ...preset.completions,
            path: `${prefix}${preset.completions?.path ?? '/completions'}`,
            asksForUsage: preset.asksForUsage,
            rules: completionsRules(preset),
            streamFailure: errors.fromStream,
          }),
        }
      : {}),
    errorFrom: errors.fromAnswer,
  }
}

function checkInputs(maxEmbeddingInputs = 1): void {
  if (!(Number.isInteger(maxEmbeddingInputs) && maxEmbeddingInputs > 0))
    throw new TypeError(
      `openaiCompatible: maxEmbeddingInputs must be a whole number above 0, not ${maxEmbeddingInputs}`,
    )
}

function checkId(id: unknown): void {
  if (typeof id !== 'string' || !ID.test(id))
    throw new TypeError(
      `openaiCompatible: id must be lower-case letters, digits and dashes, such as my-server, not ${id}`,
    )
}

const ACCOUNT = '{account}'

function presetAddress({ id, baseURL }: Preset, account = ''): string {
  if (!baseURL.includes(ACCOUNT)) return baseURL
  if (account.trim() === '')
    throw new TypeError(`openaiCompatible(presets.${id}): set the option account (or baseURL): ${baseURL} names it`)
  return baseURL.replaceAll(ACCOUNT, encodeURIComponent(account.trim()))
}

const THINK_TAGS = reasoningTags('think')

/** Returns the repair that the answers of a preset need, if any. */
function answerRepairOf({ thinksInTags, hasFractionalTimes }: Preset): AnswerRepair | undefined {
  if (thinksInTags !== true && hasFractionalTimes !== true) return undefined
  return {
    whole(completion) {
      const isCut = hasFractionalTimes === true && cutTime(completion)
      return (thinksInTags === true && THINK_TAGS.whole(completion)) || isCut
    },
    chunks() {
      const splitChunk = THINK_TAGS.chunks()
      return (chunk) => {
        const isCut = hasFractionalTimes === true && cutTime(chunk)
        return (thinksInTags === true && splitChunk(chunk)) || isCut
      }
    },
  }
}

function cutTime(body: Record<string, unknown>): boolean {
  const { created } = body
  if (typeof created !== 'number' || Number.isInteger(created)) return false
  body['created'] = Math.floor(created)
  return true
}

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
const EMBEDDINGS_MEMBERS = memberNames<NonNullable<Preset['embeddings']>>()(
  'maxInputs takesTokens givesBase64 path fields givesSignedBytes',
)
const MODERATIONS_MEMBERS = memberNames<NonNullable<Preset['moderations']>>()('takesParts')
const COMPLETIONS_MEMBERS = memberNames<NonNullable<Preset['completions']>>()(
  'path models maxTokens takesLists answersAsChat fields',
)
const RERANK_MEMBERS = memberNames<NonNullable<Preset['rerank']>>()(
  'maxDocuments maxTokens maxTextTokens maxPictures isPointwise',
)

/**
 * Checks a preset when a vendor is created, so that a mistake fails then and not at the first request.
 * @throws TypeError naming the member.
 */
function checkPreset(preset: Preset): void {
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
