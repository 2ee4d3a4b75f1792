import { Buffer } from 'node:buffer'
import type { GatewayError } from '../../core/errors.ts'
import { parseExactJson } from '../../core/exact-json.ts'
import { assertPlainJson, isJsonObject, objectOf } from '../../core/json.ts'
import { type CacheMark, cacheMarkOf } from '../../endpoints/cache-marks.ts'
import type { ChatContentPart, ChatMessage, ChatToolCall, ThinkingBlock } from '../../endpoints/chat/chat-request.ts'
import { assertFittingJsonTexts } from '../../endpoints/chat/chat-stream-writer.ts'
import { invalidParameter, unsupportedParameter } from './invalid-response.ts'
import type { ModelAbilities } from './messages-abilities.ts'

/** One entry of `messages`. Only some models accept `system` entries, and never first. */
export type MessagesTurn =
  | { role: 'user'; content: UserBlock[] }
  | { role: 'assistant'; content: AssistantBlock[] }
  | { role: 'system'; content: string }

/** A chat in Anthropic's terms: separate system text, and turns that join consecutive messages of one side. */
interface Conversation {
  /** Contains cache points only if a caller has set some. */
  readonly system: (TextBlock | CachePointBlock)[]
  readonly turns: MessagesTurn[]
}

interface OpenAssistantTurn {
  readonly role: 'assistant'
  readonly blocks: AssistantBlock[]
  readonly calls: OpenCall[]
}

interface OpenUserTurn {
  readonly role: 'user'
  readonly answers: CallAnswers
  readonly rest: UserBlock[]
  readonly system: string[]
}

type OpenTurn = OpenAssistantTurn | OpenUserTurn

/** A tool call of an assistant turn, which the next user turn must answer. */
interface OpenCall {
  /** Id in the caller's conversation. */
  readonly callId: string
  /** Id in the request to the vendor. */
  readonly toolUseId: string
}

/** Abilities of a model that decide how a conversation is written. */
export type ConversationAbilities = Pick<ModelAbilities, 'systemInPlace' | 'prefill'> & ContentAbilities

/** Members of a message without an equivalent (Anthropic, "OpenAI SDK compatibility"). */
const LOST_FIELDS = ['name', 'audio', 'function_call'] as const

/** Characters that the API rejects in the id of a tool use. */
const FORBIDDEN_ID_CHARACTERS = /[^a-zA-Z0-9_-]/g

/**
 * Converts the messages of a chat. Tool results come first in the user turn after their calls. Conversations that the API would
 * reject are repaired without losing content: a call without a result gets a placeholder result, and a result without its call
 * becomes text. A system message between two turns moves after the adjacent user turn, the only place that the API allows; without
 * such a turn it moves to the start.
 * @throws GatewayError `invalid_request` or `unsupported_parameter`, naming the message or part, or `messages` if nothing
 *   remains to answer or the model does not continue an assistant turn.
 */
export function conversationToWire(
  messages: readonly ChatMessage[],
  abilities: ConversationAbilities,
  report: (field: string) => void,
): Conversation {
  assertFittingJsonTexts(messages, { readsAnswers: false })
  const open: OpenTurn[] = []
  const system: (TextBlock | CachePointBlock)[] = []
  const usedIds: UsedIds = new Map()
  messages.forEach((message, index) => {
    const path = `messages[${index}]`
    for (const field of LOST_FIELDS) if (Reflect.get(message, field)) report(`messages.${field}`)
    if (message.role === 'system' || message.role === 'developer') {
      const isBetweenTurns = abilities.systemInPlace && open.length > 0
      const blocks = textContent(message.content, `${path}.content`, abilities)
      if (isBetweenTurns) {
        for (const block of blocks) if (block.type === 'cache_point') report(block.field)
        const text = textOf(blocks)
        if (text !== '') userTurn(open).system.push(text)
      } else for (const block of blocks) system.push(block)
    } else if (message.role === 'user') {
      const { rest } = userTurn(open)
      for (const block of contentToWire(message.content, `${path}.content`, report, abilities)) rest.push(block)
    } else if (message.role === 'tool') {
      addToolResult(userTurn(open), message, path, { report, abilities })
    } else {
      addAssistantMessage(open, message, { path, usedIds, report, abilities })
    }
  })
  return answerable(closedTurns(open, system), abilities)
}

function userTurn(open: OpenTurn[]): OpenUserTurn {
  const last = open.at(-1)
  if (last?.role === 'user') return last
  const turn: OpenUserTurn = { role: 'user', answers: new CallAnswers(last?.calls ?? []), rest: [], system: [] }
  open.push(turn)
  return turn
}

function addToolResult(
  turn: OpenUserTurn,
  message: ChatMessage,
  path: string,
  { report, abilities }: { report: (field: string) => void; abilities: ConversationAbilities },
): void {
  const callId = message.tool_call_id ?? ''
  const content = contentToWire(message.content, `${path}.content`, report, abilities)
  if (turn.answers.add(callId, content)) return
  for (const block of orphanResult(callId, content)) turn.rest.push(block)
}

function addAssistantMessage(
  open: OpenTurn[],
  message: ChatMessage,
  context: {
    path: string
    usedIds: UsedIds
    report: (field: string) => void
    abilities: ConversationAbilities
  },
): void {
  const { path, usedIds, report, abilities } = context
  const thinking = Array.isArray(message.thinking_blocks) ? message.thinking_blocks.filter(isSigned) : []
  if (thinking.length === 0 && message.reasoning_content) report('messages.reasoning_content')
  const blocks: AssistantBlock[] = [
    ...thinking,
    ...textContent(message.content, `${path}.content`, abilities),
    ...textBlocks(message.refusal),
  ]
  const calls: OpenCall[] = []
  message.tool_calls?.forEach((call, index) => {
    const toolUseId = freshId(call.id, usedIds)
    calls.push({ callId: call.id, toolUseId })
    const input = toolInput(call, `${path}.tool_calls[${index}]`)
    blocks.push({ type: 'tool_use', id: toolUseId, name: call.function.name, input })
  })
  if (blocks.length === 0) return
  const last = open.at(-1)
  if (last?.role === 'assistant' && last.calls.length > 0) userTurn(open)
  if (last?.role === 'assistant' && last.calls.length === 0) {
    for (const block of blocks) last.blocks.push(block)
    for (const call of calls) last.calls.push(call)
  } else {
    open.push({ role: 'assistant', blocks, calls })
  }
}

function toolInput(call: ChatToolCall, path: string): Record<string, unknown> {
  // Validation passes calls of other types, for vendors that support them.
  if (call.function === undefined) {
    throw unsupportedParameter(path, 'The model supports tool calls of type "function" only.')
  }
  const text = call.function.arguments
  const input = text.trim() === '' ? {} : parseExactJson(text)
  if (!isJsonObject(input)) {
    const message = 'The arguments of a tool call must be the JSON text of an object.'
    throw invalidParameter(`${path}.function.arguments`, message)
  }
  assertPlainJson(input)
  return input
}

// A block without its signature is rejected, and blocks of other vendors have none.
function isSigned(block: unknown): block is ThinkingBlock {
  if (!isJsonObject(block)) return false
  if (block['type'] === 'redacted_thinking') return typeof block['data'] === 'string'
  const { type, thinking, signature } = block
  return type === 'thinking' && typeof thinking === 'string' && typeof signature === 'string' && signature !== ''
}

/** Ids used in a conversation, each with the number to try for the next call of the same id. */
export type UsedIds = Map<string, number>

/** Returns the id of a call in the request: the caller's own, unless it repeats or the API rejects it. */
export function freshId(callId: string, usedIds: UsedIds): string {
  const base = callId.replaceAll(FORBIDDEN_ID_CHARACTERS, '_') || 'call'
  let count = usedIds.get(base) ?? FIRST_REPETITION
  let id = base
  for (; usedIds.has(id); count++) id = `${base}_${count}`
  usedIds.set(base, count)
  if (id !== base) usedIds.set(id, FIRST_REPETITION)
  return id
}

const FIRST_REPETITION = 2

/** Returns the texts of blocks, separated by line breaks. */
export function textOf(blocks: readonly (TextBlock | CachePointBlock)[]): string {
  return blocks.flatMap((block) => (block.type === 'text' ? [block.text] : [])).join('\n')
}

function closedTurns(open: OpenTurn[], system: Conversation['system']): Conversation {
  const turns: MessagesTurn[] = []
  // The calls of the last turn need an answer even if the caller sent none.
  const last = open.at(-1)
  if (last?.role === 'assistant' && last.calls.length > 0) userTurn(open)
  for (const turn of open) {
    if (turn.role === 'assistant') {
      turns.push({ role: 'assistant', content: turn.blocks })
      continue
    }
    const content = [...turn.answers.blocks(), ...turn.rest]
    if (content.length === 0) {
      for (const text of turn.system) system.push({ type: 'text', text })
      continue
    }
    turns.push({ role: 'user', content })
    if (turn.system.length > 0) turns.push({ role: 'system', content: turn.system.join('\n') })
  }
  if (turns[0]?.role === 'assistant') {
    turns.unshift({ role: 'user', content: [{ type: 'text', text: '(The conversation begins with the assistant.)' }] })
  }
  return { system, turns }
}

/**
 * Makes a conversation answerable. System text alone becomes a user turn. A final assistant turn asks the model to continue it,
 * which only some models do; its trailing white space is then removed.
 */
function answerable(conversation: Conversation, abilities: ConversationAbilities): Conversation {
  const { system, turns } = conversation
  if (turns.length === 0) {
    const text = textOf(system)
    if (text === '') {
      throw invalidParameter('messages', 'messages hold no content that the model could answer.')
    }
    return { system: [], turns: [{ role: 'user', content: [{ type: 'text', text }] }] }
  }
  const last = turns.at(-1)
  if (last?.role !== 'assistant') return conversation
  if (!abilities.prefill) {
    const message = 'The model does not continue an assistant message: messages must end with a user or tool message.'
    throw unsupportedParameter('messages', message)
  }
  return { system, turns: [...turns.slice(0, -1), { role: 'assistant', content: trimEnd(last.content) }] }
}

function trimEnd(blocks: readonly AssistantBlock[]): AssistantBlock[] {
  const last = blocks.findLastIndex(({ type }) => type !== 'cache_point')
  return blocks.map((block, index) =>
    index === last && block.type === 'text' ? { ...block, text: block.text.trimEnd() } : block,
  )
}

/** Whether the conversation ends with an assistant turn that the model must continue. */
export function endsWithPrefill(turns: readonly MessagesTurn[]): boolean {
  return turns.at(-1)?.role === 'assistant'
}

/**
 * Whether the conversation is inside a tool loop whose assistant turn does not begin with a thinking block. The API then rejects a
 * thinking budget (Anthropic, "Extended thinking", tool use).
 */
export function loopLacksThinking(turns: readonly MessagesTurn[]): boolean {
  const assistant = turns.findLast((turn) => turn.role === 'assistant')
  if (assistant?.role !== 'assistant') return false
  const first = assistant.content[0]?.type
  const inLoop = assistant.content.some((block) => block.type === 'tool_use')
  return inLoop && first !== 'thinking' && first !== 'redacted_thinking'
}

/** The calls of one assistant turn with their results. */
class CallAnswers {
  readonly #calls: readonly OpenCall[]
  /** Calls by id, and how many of them have a result, counted from the first. */
  readonly #byId = new Map<string, { readonly calls: OpenCall[]; answered: number }>()
  readonly #results = new Map<OpenCall, ToolResultContent[]>()

  constructor(calls: readonly OpenCall[]) {
    this.#calls = calls
    for (const call of calls) {
      const same = this.#byId.get(call.callId)
      if (same === undefined) this.#byId.set(call.callId, { calls: [call], answered: 0 })
      else same.calls.push(call)
    }
  }

  /**
   * Adds the result of a call. Returns false if no such call is open. Another result for an answered call is added to that of the
   * last one, because the API accepts one result per call.
   */
  add(callId: string, content: readonly ToolResultContent[]): boolean {
    const same = this.#byId.get(callId)
    if (same === undefined) return false
    const open = same.calls[same.answered]
    if (open === undefined) {
      const results = this.#results.get(same.calls.at(-1)!)!
      for (const part of content) results.push(part)
    } else {
      this.#results.set(open, [...content])
      same.answered += 1
    }
    return true
  }

  /** Returns one result for each call, in the order of the calls. A call without a result gets a placeholder. */
  blocks(): ToolResultBlock[] {
    return this.#calls.map((call) => {
      const result = { type: 'tool_result', tool_use_id: call.toolUseId } as const
      const content = this.#results.get(call)
      if (content !== undefined) return content.length === 0 ? result : { ...result, content }
      return { ...result, content: [{ type: 'text', text: 'No result was given for this tool call.' }], is_error: true }
    })
  }
}

/** Returns a result without its call as ordinary content of the user turn, because the API rejects any other form. */
function orphanResult(callId: string, content: ToolResultContent[]): UserBlock[] {
  return [{ type: 'text', text: `Result of tool call ${callId === '' ? '(no id)' : callId}:` }, ...content]
}

// Content blocks that requests carry (Anthropic, Messages reference, "content").

/** Text. The API rejects empty text. */
export interface TextBlock {
  type: 'text'
  text: string
}

/** Image formats that the API reads. */
type ImageMediaType = 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp'

/** An image as base64, or as a URL that the vendor fetches. */
interface ImageBlock {
  type: 'image'
  source: { type: 'base64'; media_type: ImageMediaType; data: string } | { type: 'url'; url: string }
}

/** A file: PDF, plain text, or other types if the model reads them. */
interface DocumentBlock {
  type: 'document'
  source:
    | { type: 'base64'; media_type: string; data: string }
    | { type: 'text'; media_type: string; data: string }
    | { type: 'url'; url: string }
  title?: string
}

/** A call of a tool by the model. `input` is an object, unlike the JSON text of a chat. */
export interface ToolUseBlock {
  type: 'tool_use'
  id: string
  name: string
  input: Record<string, unknown>
}

/** The result of a tool call. Without content, the result is empty. */
export interface ToolResultBlock {
  type: 'tool_result'
  tool_use_id: string
  content?: ToolResultContent[]
  is_error?: true
}

/** Caches the content before it. Used only if cache points are supported; the Messages dialect has no such block. */
export interface CachePointBlock {
  type: 'cache_point'
  ttl?: '1h'
  /** Member in which the caller set the mark. */
  field: CacheMark['field']
}

/** Content of a tool result. */
export type ToolResultContent = TextBlock | ImageBlock | DocumentBlock | CachePointBlock

/** Abilities of a model that decide how content is written. */
type ContentAbilities = Pick<ModelAbilities, 'documentTypes' | 'fileUrls' | 'cachePoints'>

/** Content of a user turn; tool results come first. */
export type UserBlock = ToolResultContent | ToolResultBlock

/** Content of an assistant turn; the tool uses of a message come last. */
export type AssistantBlock = TextBlock | ToolUseBlock | ThinkingBlock | CachePointBlock

/** Content of a chat message. */
type ChatContent = string | ChatContentPart[] | null | undefined

const IMAGE_MEDIA_TYPES: ReadonlyMap<string, ImageMediaType> = new Map([
  ['image/jpeg', 'image/jpeg'],
  ['image/jpg', 'image/jpeg'],
  ['image/png', 'image/png'],
  ['image/gif', 'image/gif'],
  ['image/webp', 'image/webp'],
])

/** Returns a text block, or none without visible text, which the API rejects. */
function textBlocks(text: unknown): TextBlock[] {
  return typeof text !== 'string' || text.trim() === '' ? [] : [{ type: 'text', text }]
}

/**
 * Converts content that may be only text (system and assistant messages), one block per part. A refusal counts as text.
 * @throws GatewayError `unsupported_parameter` naming a part of another type.
 */
export function textContent(
  content: ChatContent,
  path: string,
  abilities: ContentAbilities = {},
): (TextBlock | CachePointBlock)[] {
  if (!Array.isArray(content)) return textBlocks(content)
  return content.flatMap((part, index): (TextBlock | CachePointBlock)[] => {
    if (part.type === 'text') return [...textBlocks(part.text), ...cachePointsBehind(part, abilities)]
    if (part.type === 'refusal') return textBlocks(part.refusal)
    throw unsupportedPart(part.type, `${path}[${index}]`)
  })
}

/**
 * Converts the content of a user or tool message: text, images and files.
 * @throws GatewayError `unsupported_parameter` for a part type that the vendor lacks, `invalid_request` for an image or file
 *   that it cannot read, each naming the part.
 */
function contentToWire(
  content: ChatContent,
  path: string,
  report: (field: string) => void,
  abilities: ContentAbilities = {},
): ToolResultContent[] {
  if (!Array.isArray(content)) return textBlocks(content)
  return content.flatMap((part, index): ToolResultContent[] => {
    const partPath = `${path}[${index}]`
    const cachePoints = cachePointsBehind(part, abilities)
    if (part.type === 'text') return [...textBlocks(part.text), ...cachePoints]
    if (part.type === 'image_url') {
      if (part.image_url.detail && part.image_url.detail !== 'auto') report('image_url.detail')
      return [imageBlock(part.image_url.url, `${partPath}.image_url.url`), ...cachePoints]
    }
    if (part.type === 'file') return [documentBlock(part.file, `${partPath}.file`, abilities), ...cachePoints]
    throw unsupportedPart(part.type, partPath)
  })
}

/** Returns a cache point for the mark of a part or tool, if the model has cache points. */
export function cachePointsBehind(part: object, { cachePoints }: ContentAbilities): CachePointBlock[] {
  const mark = cachePoints === true ? cacheMarkOf(part) : undefined
  if (mark === undefined) return []
  const { field, isLong } = mark
  return [{ type: 'cache_point', ...(isLong ? { ttl: '1h' } : {}), field }]
}

function imageBlock(url: string, path: string): ImageBlock {
  if (/^https?:\/\//i.test(url)) return { type: 'image', source: { type: 'url', url } }
  const data = readDataUrl(url)
  if (data === undefined) {
    throw invalidParameter(path, 'An image must be an http(s) URL or a data URL in base64.')
  }
  const mediaType = IMAGE_MEDIA_TYPES.get(data.mediaType)
  if (mediaType === undefined) {
    const types = 'image/jpeg, image/png, image/gif and image/webp'
    throw invalidParameter(path, `The model reads only images of the types ${types}.`)
  }
  return { type: 'image', source: { type: 'base64', media_type: mediaType, data: data.base64 } }
}

function documentBlock(file: unknown, path: string, { documentTypes, fileUrls }: ContentAbilities): DocumentBlock {
  const { file_data: fileData, file_url: url, filename } = objectOf(file)
  const title = typeof filename === 'string' && filename !== '' ? { title: filename } : {}
  if (fileUrls === true && fileData === undefined && typeof url === 'string' && /^https?:\/\//i.test(url))
    return { type: 'document', source: { type: 'url', url }, ...title }
  if (typeof fileData !== 'string') {
    throw unsupportedParameter(path, 'The model accepts files only as file_data.')
  }
  const data = readDataUrl(fileData)
  const isTaken = data !== undefined && (documentTypes ?? MESSAGES_DOCUMENTS).has(data.mediaType)
  if (!isTaken) {
    const types =
      documentTypes === undefined ? 'PDF and text files' : `files of the types ${[...documentTypes].join(', ')}`
    const message = `The model accepts only ${types}, as a data URL: data:application/pdf;base64,…`
    throw invalidParameter(`${path}.file_data`, message)
  }
  const { mediaType, base64 } = data
  const isText = documentTypes === undefined && mediaType === PLAIN_TEXT
  return {
    type: 'document',
    source: isText
      ? { type: 'text', media_type: mediaType, data: Buffer.from(base64, 'base64').toString('utf8') }
      : { type: 'base64', media_type: mediaType, data: base64 },
    ...title,
  }
}

const PLAIN_TEXT = 'text/plain'

/** Files of the Messages API: PDF as base64, plain text as text (Anthropic API reference, "Create a Message", document). */
const MESSAGES_DOCUMENTS: ReadonlySet<string> = new Set(['application/pdf', PLAIN_TEXT])

function unsupportedPart(type: string, path: string): GatewayError {
  return unsupportedParameter(path, `The model does not support content of type ${JSON.stringify(type)} here.`)
}

/** The content of a data URL. */
export interface DataUrl {
  /** Media type in lower case, without parameters: `image/png`. Empty if the URL states none. */
  readonly mediaType: string
  /** Never empty. */
  readonly base64: string
}

/** Reads `data:image/png;base64,…`. Undefined for any other URL, and for data in another encoding. */
export function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(',')
  if (comma === -1 || url.slice(0, 5).toLowerCase() !== 'data:') return undefined
  const [mediaType = '', ...parameters] = url.slice(5, comma).toLowerCase().split(';')
  const base64 = url.slice(comma + 1)
  return parameters.at(-1)?.trim() === 'base64' && base64 !== '' ? { mediaType: mediaType.trim(), base64 } : undefined
}
