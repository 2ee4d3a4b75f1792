import { SAMPLINGS_WITH_TOOLS } from '../../catalog/prices/plausible-usage.ts'
import { isJsonObject, objectOf, objectsIn } from '../../core/json.ts'
import { SSE_DONE, sseData } from '../../wire/sse.ts'
import { type CachedAnswers, hasHostedTool, hasOtherTier, namesFile } from '../answer-json.ts'
import { chatCacheTime } from '../cache-marks.ts'
import { type CallerUrl, defineEndpoint } from '../endpoint.ts'
import { openaiErrors } from '../error-dialect.ts'
import { isInline, type MediaInput, type MediaKind } from '../media-input.ts'
import { withoutFields } from '../price-members.ts'
import { checkRequest, jsonSchemaOf } from '../schema.ts'
import {
  type AnswerObject,
  type EndpointTexts,
  type KindOf,
  kindsByName,
  type RequestPlaces,
  requestTexts,
  type SaidFacts,
  type TextPart,
  type TextRole,
  type TextStep,
  type TextStreamReader,
  textsIn,
} from '../texts.ts'
import { DEFAULT_MAX_OUTPUT_TOKENS } from '../token-estimate.ts'
import { addWebUrls, eachPart, type ImagePlaces, type Part, remoteImages } from '../web-urls.ts'
import { chatUsage } from './chat-completion.ts'
import { ChatChunkWriter, type ChatOffer, createChatOperation } from './chat-operation.ts'
import type { ChatRequest } from './chat-request.ts'
import { chatSchema } from './chat-schema.ts'
import {
  CHAT_SURCHARGES,
  chatExtras,
  chatFieldParam,
  chatPriceFields,
  chatSearches,
  pluginExtras,
  runsTools,
  searchParam,
} from './chat-surcharges.ts'

const IMAGES: ImagePlaces = { list: 'messages', nested: ['content'], type: 'image_url', url: 'image_url.url' }

/** Returns the addresses of images, videos, audio and files in the messages of a chat. */
function chatUrls({ messages }: ChatRequest): readonly CallerUrl[] {
  const urls: CallerUrl[] = []
  for (let index = 0; index < messages.length; index++) {
    const { content } = messages[index]!
    // Most messages are text, for which no path is written.
    if (Array.isArray(content))
      eachPart(content, `messages[${index}].content`, [], (part, path) => addWebUrls(part, path, urls))
  }
  return urls
}

/** Longest spoken answer that a conversation may refer to, in tokens (OpenAI, output limit of its audio models). */
const SPOKEN_ANSWER_TOKENS = 16_384

/** Returns the inputs of a chat other than text, including part types of other vendors. */
function chatMedia({ messages }: ChatRequest): readonly MediaInput[] {
  const media: MediaInput[] = []
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!
    const { content } = message
    const { audio } = message as unknown as Part
    const isSpoken = isJsonObject(audio) && typeof audio['id'] === 'string'
    if (!Array.isArray(content) && !isSpoken) continue
    if (Array.isArray(content))
      for (const part of content) for (const input of partMedia(part as Part)) media.push(input)
    if (isSpoken) media.push({ kind: 'audio', maxTokens: SPOKEN_ANSWER_TOKENS })
  }
  return media
}

function partMedia(part: Part): MediaInput[] {
  const { type } = part
  switch (type) {
    case 'text':
    case 'refusal':
      return []
    case 'image_url': {
      const image = asObject(part['image_url'])
      const detail = image['detail'] ?? part['detail']
      return [{ ...located('image', image['url']), ...(typeof detail === 'string' ? { detail } : {}) }]
    }
    case 'input_audio': {
      const { data, format } = asObject(part['input_audio'])
      const sound = located('audio', data)
      const isTyped = typeof format === 'string' && sound.data !== undefined && !/^data:/i.test(sound.data)
      return [isTyped ? { ...sound, mediaType: `audio/${format.toLowerCase()}` } : sound]
    }
    case 'file': {
      const { file_data: data } = asObject(part['file'])
      return [located('document', data)]
    }
    default:
      return otherMedia(part, mediaKindOf(String(type)))
  }
}

function mediaKindOf(type: string): MediaKind {
  return (['image', 'audio', 'video'] as const).find((kind) => type.includes(kind)) ?? 'document'
}

/** Parts of other vendors: `video_url`, `document_url`, `input_file`, lists of frames. Their texts count as text. */
function otherMedia(part: Part, kind: MediaKind): MediaInput[] {
  return Object.entries(part).flatMap(([name, value]): MediaInput[] => {
    if (typeof value === 'string') {
      if (/(?:^|_)(?:file_id|file_uri)$/.test(name)) return [{ kind }]
      return /^[a-z][a-z0-9+.-]*:\/\/|^data:/i.test(value.slice(0, 32)) ? [located(kind, value)] : []
    }
    if (Array.isArray(value)) return value.flatMap((item) => otherMedia(asItem(item), kind))
    return isJsonObject(value) ? otherMedia(value, kind) : []
  })
}

function asItem(value: unknown): Part {
  return typeof value === 'string' ? { item: value } : asObject(value)
}

/** A `data:` URL or base64 is present in the request. An address or an id is not. */
function located(kind: MediaKind, data: unknown): MediaInput {
  return typeof data === 'string' && data !== '' && isInline(data) ? { kind, data } : { kind }
}

function asObject(value: unknown): Part {
  // Some vendors accept a bare address where others expect an object with it.
  return isJsonObject(value) ? value : { url: value, data: value }
}

/** Tools that callers run. */
const TOOLS_OF_CALLERS: ReadonlySet<unknown> = new Set(['function', 'custom'])

/** How chats are answered from the cache. */
export const cachedChats: CachedAnswers<ChatRequest, ChatOffer> = {
  leftOut: new Set([
    ...['stream', 'stream_options', 'user', 'metadata', 'safety_identifier'],
    ...['prompt_cache_key', 'prompt_cache_options', 'session_id'],
  ]),
  form: ({ stream, stream_options: options }) =>
    stream === true ? (options?.include_usage === true ? 'stream with usage' : 'stream') : '',
  isDeterministic: ({ temperature }) => temperature === 0,
  isExcluded: (request) =>
    request['store'] === true ||
    hasOtherTier(request) ||
    searchParam(request) !== undefined ||
    pluginExtras(request).length > 0 ||
    hasHostedTool(request.tools, TOOLS_OF_CALLERS) ||
    namesFile(request.messages),
  refusals: ['"content_filter"'],
  idPaths: [['id']],
  costMark: '"cost":"',
}

const kindByName = kindsByName({
  text: ['content', 'text', 'refusal', 'description', 'title'],
  reasoning: ['reasoning_content', 'reasoning', 'thinking', 'summary'],
  tool_arguments: ['arguments', 'input'],
  transcript: ['transcript'],
})

/** The type of a detail decides the kind of the text inside `reasoning_details`. */
const textKindOf: KindOf = (name, owner) => {
  const kind = kindByName(name, owner)
  return kind === 'text' && String(owner['type']).startsWith('reasoning.') ? 'reasoning' : kind
}

/** Members next to the choices with the sources of a search, repeated per chunk (Perplexity, "Chat completions"). */
const SOURCES = ['citations', 'search_results', 'related_questions'] as const

/** In lists of sources, an entry may be a bare string: an address or a question. */
const sourceKind: KindOf = (name, owner) =>
  name === 'snippet' || SOURCES.includes(name as (typeof SOURCES)[number]) ? 'text' : textKindOf(name, owner)

function sourceTexts(answer: AnswerObject): TextPart[] {
  const texts: TextPart[] = []
  for (const name of SOURCES)
    if (answer[name] !== undefined) texts.push(...textsIn(answer[name], [name], { kindOf: sourceKind, index: 0 }))
  return texts
}

const ROLES: Readonly<Record<string, TextRole>> = { developer: 'system', function: 'tool' }

const PLACES: RequestPlaces = {
  kindOf: textKindOf,
  last: ['functions', 'tools', 'prediction', 'messages'],
  roleOf(member, entry) {
    if (member === 'prediction') return 'assistant'
    if (member === 'tools' || member === 'functions') return 'system'
    if (member !== 'messages' || !isJsonObject(entry)) return undefined
    return ROLES[String(entry['role'])] ?? (entry['role'] as TextRole)
  },
}

/** Where texts of the chat dialect are. */
export const chatTexts: EndpointTexts<ChatRequest> = {
  request: (request) => requestTexts(request, PLACES),
  jsonSchema({ response_format: format }) {
    if (format?.type !== 'json_schema') return undefined
    const { json_schema: named } = format as { readonly json_schema?: unknown }
    return isJsonObject(named) ? named['schema'] : undefined
  },
  answer: {
    whole: (answer) => [...choicesOf(answer).flatMap(choiceTexts), ...sourceTexts(answer)],
    replaced: withoutProbabilities,
    refusal: (answer, message) => ({
      ...withoutSources(answer),
      choices: choicesOf(answer).map((choice, index) => ({
        index: choice['index'] ?? index,
        message: { role: 'assistant', content: null, refusal: message },
        logprobs: null,
        finish_reason: 'content_filter',
      })),
    }),
    said: saidInChat,
    stream: () => new ChatTextReader(),
  },
}

function saidInChat(text: string, { request, model, nowMs, seed, isStream }: SaidFacts): AnswerObject | string {
  const id = `chatcmpl-${seed}`
  const created = Math.floor(nowMs / 1000)
  if (!isStream) {
    const message = { role: 'assistant', content: text, refusal: null }
    const choices = [{ index: 0, message, logprobs: null, finish_reason: 'stop' }]
    return { id, object: 'chat.completion', created, model, choices, usage: chatUsage({}) }
  }
  const includeUsage = (request as ChatRequest).stream_options?.include_usage === true
  const writer = new ChatChunkWriter({ model, createdSeconds: created, includeUsage })
  writer.start(id)
  writer.text(text)
  writer.finish('stop')
  writer.done(includeUsage ? {} : undefined)
  return writer.take()
}

function choicesOf({ choices }: AnswerObject): AnswerObject[] {
  return objectsIn(choices)
}

function choiceTexts({ message }: AnswerObject, at: number): TextPart[] {
  return textsIn(message, ['choices', at, 'message'], { kindOf: textKindOf, index: at })
}

function withoutSources(answer: AnswerObject): AnswerObject {
  const others = { ...answer }
  for (const name of SOURCES) delete others[name]
  return others
}

/** Probabilities name the tokens of a text. */
function withoutProbabilities(answer: AnswerObject): void {
  for (const choice of choicesOf(answer)) if (isJsonObject(choice['logprobs'])) choice['logprobs'] = null
}

/** OpenAI pads events to equal length with this member. */
const PLAIN = { padding: ['obfuscation'] } as const

/** Members of a delta that carry no text, other than the role. */
const PLAIN_MEMBERS: ReadonlySet<string> = new Set(['role', 'content', 'refusal', 'reasoning_content', 'reasoning'])

/** Members of a delta that contain the answer. Annotations and vendors' own members also appear between thoughts. */
const ANSWER_MEMBERS: ReadonlySet<string> = new Set(['content', 'refusal', 'audio', 'tool_calls', 'function_call'])

class ChatTextReader implements TextStreamReader {
  readonly plain = PLAIN
  #last: AnswerObject = {}
  readonly #finished = new Set<number>()
  readonly #seen = new Set<number>()
  /** Number of annotations by choice, because each annotation arrives whole. */
  readonly #annotations = new Map<number, number>()
  /** Choices that reason. */
  readonly #reasoning = new Set<number>()
  /** Number of the last reasoning detail by choice. */
  readonly #details = new Map<number, number>()
  /** Latest texts of the sources, by id. */
  readonly #sources = new Map<string, string>()

  get repeats(): boolean {
    return this.#sources.size > 0
  }

  read(event: AnswerObject): TextStep {
    if (event['object'] !== undefined) this.#last = event
    const added: TextPart[] = []
    const ended: string[] = []
    const choices = choicesOf(event)
    let isBare = choices.length === 1 && !isJsonObject(event['usage'])
    for (const [position, choice] of choices.entries()) {
      const index = typeof choice['index'] === 'number' ? choice['index'] : position
      const { delta, finish_reason: finish } = choice
      const isFirst = !this.#seen.has(index)
      this.#seen.add(index)
      if (repeatsContent(choice)) isBare = false
      if (isJsonObject(delta)) {
        const known = this.#annotations.get(index) ?? 0
        const { annotations } = delta
        if (Array.isArray(annotations)) {
          this.#annotations.set(index, known + annotations.length)
          for (const at of annotations.keys()) ended.push(`choices[${index}].message.annotations[${known + at}].`)
        }
        this.#endDetails(index, delta, ended)
        const parts = deltaTexts(delta, { position, index, annotations: known })
        if (this.#endReasoning(index, delta, parts, ended)) isBare = false
        added.push(...parts)
        if (isFirst || !isPlain(delta)) isBare = false
      }
      if (typeof finish !== 'string') continue
      ended.push(`choices[${index}].`)
      isBare = false
    }
    const repeated: TextPart[] = []
    for (const part of sourceTexts(event)) {
      isBare = false
      if (this.#sources.get(part.id) === part.text) repeated.push(part)
      else {
        this.#sources.set(part.id, part.text)
        added.push(part)
        ended.push(part.id)
      }
    }
    return { added, repeated, ended, isBare: isBare && added.length === 1 }
  }

  /** Ends the reasoning of a choice where its answer begins. Returns whether it did. */
  #endReasoning(choice: number, delta: AnswerObject, parts: readonly TextPart[], ended: string[]): boolean {
    if (parts.some(({ kind }) => kind === 'reasoning')) {
      this.#reasoning.add(choice)
      return false
    }
    const { tool_calls: calls } = delta
    const isCall = Array.isArray(calls) && calls.length > 0
    const isAnswer = isCall || parts.some(({ path }) => ANSWER_MEMBERS.has(String(path[3])))
    if (!isAnswer || !this.#reasoning.delete(choice)) return false
    ended.push(`choices[${choice}].message.reasoning`)
    return true
  }

  /** Ends a reasoning detail at its signature, which belongs to its text, or where the next detail begins. */
  #endDetails(choice: number, delta: AnswerObject, ended: string[]): void {
    for (const detail of detailsOf(delta)) {
      const { index, signature } = detail
      if (typeof index !== 'number') continue
      const last = this.#details.get(choice) ?? index
      if (index > last) ended.push(`choices[${choice}].message.reasoning_details[${last}].`)
      if (index >= last) this.#details.set(choice, index)
      // Some vendors send an empty signature in every chunk.
      if (typeof signature === 'string' && signature !== '')
        ended.push(`choices[${choice}].message.reasoning_details[${index}].`)
    }
  }

  more(event: AnswerObject, { path }: TextPart, text: string): AnswerObject {
    const { usage: _usage, ...shared } = withoutSources(event)
    const choice = choicesOf(event)[path[1] as number] ?? {}
    const delta = objectOf(choice['delta'])
    const [, , , member, position] = path as readonly [string, number, string, string, number?]
    const calls = delta[member]
    const call: unknown = member === 'tool_calls' && Array.isArray(calls) ? calls[position ?? 0] : undefined
    const more = isJsonObject(call)
      ? { tool_calls: [{ index: call['index'] ?? position, ...argumentsOf(call, text) }] }
      : onlyText(delta, path.slice(3), text)
    return { ...shared, choices: [{ index: choice['index'] ?? 0, delta: more, logprobs: null, finish_reason: null }] }
  }

  sent(event: AnswerObject): void {
    for (const { index, finish_reason: finish } of choicesOf(event))
      if (typeof index === 'number' && typeof finish === 'string') this.#finished.add(index)
  }

  mended(event: AnswerObject): boolean {
    const twice = choicesOf(event).filter(repeatsContent)
    for (const choice of twice) for (const name of WHOLE_MEMBERS) delete choice[name]
    return twice.length > 0
  }

  replaced = withoutProbabilities

  refusal(message: string): string {
    const { id = 'chatcmpl-refused', created = 0, model = '' } = this.#last
    const seen = this.#seen.size === 0 ? [0] : [...this.#seen]
    const open = seen.filter((index) => !this.#finished.has(index))
    const choices = open.map((index) => ({
      index,
      delta: { refusal: message },
      logprobs: null,
      finish_reason: 'content_filter',
    }))
    if (choices.length === 0) return SSE_DONE
    return sseData(JSON.stringify({ id, object: 'chat.completion.chunk', created, model, choices })) + SSE_DONE
  }
}

/** Members of a choice in which some vendors repeat the whole text. Chunks of the dialect have none. */
const WHOLE_MEMBERS = ['message', 'text'] as const

function repeatsContent(choice: AnswerObject): boolean {
  return WHOLE_MEMBERS.some((name) => choice[name] !== undefined)
}

/** Names and ids of tool calls come with their first arguments. */
function isPlain(delta: AnswerObject): boolean {
  const { tool_calls: calls } = delta
  for (const name in delta) {
    if (name !== 'tool_calls' && !PLAIN_MEMBERS.has(name) && delta[name] !== null) return false
  }
  if (!Array.isArray(calls)) return true
  return calls.every(
    (call) =>
      isJsonObject(call) && call['id'] === undefined && isJsonObject(call['function']) && !call['function']['name'],
  )
}

/** Keeps only the text at its path, and the types of list entries on the way. */
function onlyText(value: unknown, [step, ...rest]: readonly (string | number)[], text: string): unknown {
  if (step === undefined) return text
  const member: unknown = (value as Record<string | number, unknown>)[step]
  const inner = onlyText(member, rest, text)
  if (typeof step === 'string') return { [step]: inner }
  if (!isJsonObject(member) || !isJsonObject(inner)) return [inner]
  const { type, index } = member
  return [{ ...(type !== undefined && { type }), ...(index !== undefined && { index }), ...inner }]
}

function argumentsOf(call: AnswerObject, text: string): AnswerObject {
  return call['custom'] === undefined ? { function: { arguments: text } } : { custom: { input: text } }
}

/** Place of a delta, and the number of annotations that its choice had before. */
interface DeltaPlace {
  readonly position: number
  readonly index: number
  readonly annotations: number
}

/** Returns the entries of `reasoning_details` that the paths refer to. */
function detailsOf(delta: AnswerObject): readonly AnswerObject[] {
  const { reasoning_details: details } = delta
  return Array.isArray(details) ? details.map((detail: unknown) => objectOf(detail)) : []
}

/** Returns the texts of a delta, with ids of the whole answer. */
function deltaTexts(delta: AnswerObject, { position, index, annotations }: DeltaPlace): TextPart[] {
  const path = ['choices', position, 'delta']
  const parts = textsIn(delta, path, { kindOf: textKindOf, index })
  const details = detailsOf(delta)
  return parts.map((part) => {
    const rest = part.path.slice(path.length)
    const calls = delta['tool_calls']
    const call: unknown = rest[0] === 'tool_calls' && Array.isArray(calls) ? calls[rest[1] as number] : undefined
    const number = isJsonObject(call) && typeof call['index'] === 'number' ? call['index'] : rest[1]
    let place = call === undefined ? rest : ['tool_calls', number as number, ...rest.slice(2)]
    if (rest[0] === 'reasoning_details') {
      const { index: detail } = details[rest[1] as number] ?? {}
      if (typeof detail === 'number') place = ['reasoning_details', detail, ...rest.slice(2)]
    }
    if (rest[0] === 'annotations') place = ['annotations', annotations + (rest[1] as number), ...rest.slice(2)]
    const id = place.reduce<string>(
      (text, step) => (typeof step === 'number' ? `${text}[${step}]` : `${text}.${step}`),
      `choices[${index}].message`,
    )
    return { ...part, id }
  })
}

/** `POST /v1/chat/completions` (API specification, "Chat completion request"). */
export const chatEndpoint = defineEndpoint<ChatRequest, ChatOffer>({
  id: 'chat',
  path: '/v1/chat/completions',
  isBatchable: true,
  kind: 'chat',
  protocols: ({ chat }) => chat?.protocols ?? [],
  servesUnlisted: ({ chat }) => chat !== undefined && (chat.protocol ?? true),
  errors: openaiErrors,
  exactMembers: new Map([
    ['parameters', 'value'],
    ['schema', 'value'],
  ]),
  isSticky: true,
  parse: (body) => checkRequest<ChatRequest>(chatSchema(), body),
  requestSchema: () => jsonSchemaOf(chatSchema(), 'input'),
  isStream: (request) => request.stream === true,
  media: chatMedia,
  estimate(request, inputTokens, { limits, protocol }) {
    const perChoice =
      request.max_completion_tokens ?? request.max_tokens ?? limits.maxOutputTokens ?? DEFAULT_MAX_OUTPUT_TOKENS
    const webSearches = chatSearches(request, protocol)
    const cacheTime = chatCacheTime(request)
    const usage = { inputTokens, outputTokens: perChoice * (request.n ?? 1) }
    // Fast path of nearly every chat: the code below allocates an object per line.
    if (cacheTime === 'none' && webSearches === undefined) return usage
    return {
      ...usage,
      ...(cacheTime === 'none' ? {} : { cacheWriteTokens: inputTokens }),
      ...(cacheTime === 'hour' ? { cacheWrite1hTokens: inputTokens } : {}),
      ...(webSearches === undefined ? {} : { webSearches }),
    }
  },
  answers: ({ n }) => n ?? 1,
  samplings: (request) => (request.n ?? 1) * (runsTools(request) ? SAMPLINGS_WITH_TOOLS : 1),
  outputBound: {
    of: (request) => request.max_completion_tokens ?? request.max_tokens ?? undefined,
    // Every vendor's translation knows this one, and servers of the dialect that know one only know it.
    member: 'max_tokens',
  },
  mostOutputTokens: ({ chat }, model) => chat?.mostOutputTokens?.(model),
  priceFields: chatPriceFields,
  surcharges: CHAT_SURCHARGES,
  priceFieldParam: chatFieldParam,
  // A translation has no words for them.
  extraFeatures: (request, { chat }) => (chat?.passThrough === undefined ? [] : chatExtras(request)),
  extraFields: ['server_tool'],
  priceFieldsAt: (fields, { chat }) => withoutFields(fields, chat?.leavesOut),
  createOperation: ({ chat }, call) => (chat === undefined ? undefined : createChatOperation(chat, call)),
  callerUrls: chatUrls,
  cached: cachedChats,
  texts: chatTexts,
  remoteMedia: (request, { chat }, model) =>
    chat?.takesImageUrls?.(model) === false ? remoteImages(request, IMAGES) : undefined,
})
