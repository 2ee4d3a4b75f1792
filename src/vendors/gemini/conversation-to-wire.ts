import { GatewayError } from '../../core/errors.ts'
import { parseExactJson } from '../../core/exact-json.ts'
import { assertPlainJson, isJsonObject, parseVendorJson } from '../../core/json.ts'
import type { ChatContentPart, ChatMessage, ChatToolCall } from '../../endpoints/chat/chat-request.ts'
import { assertFittingJsonTexts } from '../../endpoints/chat/chat-stream-writer.ts'
import { invalidParameter, unsupportedParameter } from '../shared/invalid-response.ts'
import { readDataUrl } from '../shared/messages-conversation.ts'
import type { GeminiContent, GeminiPart } from './api-request.ts'
import { type ModelAbilities, signatureOf, signCurrentTurn } from './model-abilities.ts'

/** A conversation in the vendor's form. */
interface Conversation {
  readonly systemInstruction: { parts: GeminiPart[] } | undefined
  readonly contents: GeminiContent[]
}

/** A turn under construction. Responses of a step are filled in once all messages are read. */
interface Turn {
  readonly role: GeminiContent['role']
  readonly parts: () => GeminiPart[]
}

/**
 * Translates a chat's messages. System messages are collected, and adjacent turns of one role are merged. The responses of a step
 * follow directly after its calls, in the order of the calls (Gemini API, "Function calling": a turn of calls follows a user turn,
 * and one turn holds all its responses).
 * @param hasCallIds Whether calls and responses carry ids. Without ids, they match by name and order.
 * @throws GatewayError `invalid_request` naming a tool message without a call; `unsupported_parameter` naming content
 *   without an equivalent.
 */
export function conversationToWire(
  messages: readonly ChatMessage[],
  abilities: ModelAbilities,
  report: (field: string) => void,
  hasCallIds = true,
): Conversation {
  assertFittingJsonTexts(messages, { readsAnswers: true })
  const systemParts: GeminiPart[] = []
  const turns: Turn[] = []
  const open = new OpenCalls()
  for (const [index, message] of messages.entries()) {
    const path = `messages[${index}]`
    if (message.role !== 'tool' && typeof message.name === 'string') report('messages.name')
    if (message.role === 'system' || message.role === 'developer') {
      for (const part of contentToWire(message.content, `${path}.content`, report)) systemParts.push(part)
    } else if (message.role === 'user') {
      const parts = contentToWire(message.content, `${path}.content`, report)
      turns.push({ role: 'user', parts: () => parts })
    } else if (message.role === 'assistant') {
      const step = new ToolStep(message.tool_calls ?? [], `${path}.tool_calls`, hasCallIds)
      const parts = assistantParts(message, step, path, report)
      open.add(step)
      turns.push({ role: 'model', parts: () => parts }, { role: 'user', parts: () => step.responseParts })
    } else if (!open.accept(message, path, report)) {
      const param = `${path}.tool_call_id`
      throw invalidParameter(param, `${param}: there is no open tool call of this id in the messages before.`)
    }
  }
  const contents = mergedContents(turns)
  const hasSystem = systemParts.length > 0
  const asUser = hasSystem && (!abilities.systemInstruction || contents.length === 0)
  if (asUser) prependUser(contents, systemParts)
  // A conversation must begin with the user, so a blank user turn is added before an assistant.
  if (contents[0]?.role === 'model') prependUser(contents, [{ text: ' ' }])
  if (abilities.checksSignatures) signCurrentTurn(contents)
  return { systemInstruction: hasSystem && !asUser ? { parts: systemParts } : undefined, contents }
}

function assistantParts(
  message: ChatMessage,
  step: ToolStep,
  path: string,
  report: (field: string) => void,
): GeminiPart[] {
  const parts = contentToWire(message.content, `${path}.content`, report)
  if (parts.length === 0) parts.push(...textParts(message.refusal))
  const signature = signatureOf(message.extra_content)
  if (signature !== undefined) {
    const lastPart = parts.at(-1)
    const firstCall = step.callParts[0]
    // A signature without a text belongs to the call next to it, or arrived alone at the end of a stream.
    if (lastPart !== undefined) lastPart.thoughtSignature = signature
    else if (firstCall !== undefined) firstCall.thoughtSignature ??= signature
    else parts.push({ text: '', thoughtSignature: signature })
  }
  return [...parts, ...step.callParts]
}

function mergedContents(turns: readonly Turn[]): GeminiContent[] {
  const contents: GeminiContent[] = []
  for (const { role, parts } of turns) {
    const added = parts()
    if (added.length === 0) continue
    const last = contents.at(-1)
    if (last?.role === role) for (const part of added) last.parts.push(part)
    else contents.push({ role, parts: [...added] })
  }
  return contents
}

function prependUser(contents: GeminiContent[], parts: readonly GeminiPart[]): void {
  const first = contents[0]
  if (first?.role === 'user') contents[0] = { ...first, parts: [...parts, ...first.parts] }
  else contents.unshift({ role: 'user', parts: [...parts] })
}

/** A function call of the history that waits for its response. */
interface OpenCall {
  readonly id: string
  readonly name: string
  response: GeminiPart | undefined
}

/** Calls without a response, by id. For a repeated id, the latest step is used, and its first call. */
class OpenCalls {
  readonly #byId = new Map<string, { readonly step: ToolStep; readonly calls: OpenCall[]; next: number }[]>()

  add(step: ToolStep): void {
    for (const call of step.calls) {
      const steps = this.#byId.get(call.id)
      const last = steps?.at(-1)
      if (last?.step === step) last.calls.push(call)
      else if (steps !== undefined) steps.push({ step, calls: [call], next: 0 })
      else this.#byId.set(call.id, [{ step, calls: [call], next: 0 }])
    }
  }

  /** Accepts a tool message. Returns false if it does not answer an open call. */
  accept(message: ChatMessage, path: string, report: (field: string) => void): boolean {
    const steps = this.#byId.get(message.tool_call_id ?? '')
    const last = steps?.at(-1)
    if (steps === undefined || last === undefined) return false
    last.step.answer(last.calls[last.next]!, message, path, report)
    last.next += 1
    if (last.next === last.calls.length) steps.pop()
    return true
  }
}

/** All calls of one assistant message and their responses, in call order. */
class ToolStep {
  readonly callParts: readonly GeminiPart[]
  readonly calls: readonly OpenCall[]
  /** Media of a tool's answer, which the vendor accepts as parts of the same turn. */
  readonly #mediaParts: GeminiPart[] = []
  readonly #hasIds: boolean

  /** @throws GatewayError `unsupported_parameter` naming a call of something other than a function. */
  constructor(calls: readonly ChatToolCall[], path: string, hasIds: boolean) {
    this.#hasIds = hasIds
    this.callParts = calls.map((call, index) => callPart(call, `${path}[${index}]`, hasIds))
    this.calls = calls.map((call) => ({ id: call.id, name: call.function.name, response: undefined }))
  }

  /** Stores the answer to a call of this step. */
  answer(call: OpenCall, message: ChatMessage, path: string, report: (field: string) => void): void {
    const { text, media } = splitContent(message.content)
    // Models without ids match by name, so the name is that of the call, not of the message.
    call.response = {
      functionResponse: {
        ...(call.id === '' || !this.#hasIds ? {} : { id: call.id }),
        name: call.name,
        response: responseObject(text),
      },
    }
    for (const part of contentToWire(media, `${path}.content`, report)) this.#mediaParts.push(part)
  }

  /** The parts of the user turn that follows the calls. */
  get responseParts(): GeminiPart[] {
    const responses = this.calls.flatMap(({ response }) => (response === undefined ? [] : [response]))
    return [...responses, ...this.#mediaParts]
  }
}

function callPart(call: ChatToolCall, path: string, hasIds: boolean): GeminiPart {
  if (!isJsonObject(call.function)) {
    throw unsupportedParameter(path, `${path}: the model supports only calls of functions.`)
  }
  const signature = signatureOf(call.extra_content)
  return {
    functionCall: {
      ...(call.id === '' || !hasIds ? {} : { id: call.id }),
      name: call.function.name,
      args: callArguments(call.function.arguments),
    },
    ...(signature === undefined ? {} : { thoughtSignature: signature }),
  }
}

/** Arguments must be an object. Other text, which models sometimes write, is kept under its own name. */
function callArguments(text: string): Record<string, unknown> {
  if (text.trim() === '') return {}
  return jsonObjectText(text, parseExactJson) ?? { arguments: text }
}

/** A response must be an object. A tool's object stays; anything else gets the vendor's own name. */
function responseObject(text: string): Record<string, unknown> {
  const value = jsonObjectText(text, parseVendorJson)
  // An integer of 19 digits would lose precision, so it stays text.
  return value === undefined || holdsInexactInteger(value) ? { output: text } : value
}

function splitContent(content: ChatContent): { text: string; media: Exclude<ChatContent, string | null | undefined> } {
  if (content === null || content === undefined) return { text: '', media: [] }
  if (typeof content === 'string') return { text: content, media: [] }
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
  return { text, media: content.filter((part) => part.type !== 'text') }
}

/**
 * Reads text that may be a JSON object, such as a model's arguments. Returns `undefined` if it is not, or is nested too deep to be
 * written again.
 */
function jsonObjectText(text: string, parse: (text: string) => unknown): Record<string, unknown> | undefined {
  if (!text.trimStart().startsWith('{')) return undefined
  const value = parse(text)
  return isJsonObject(value) && isPlain(value) ? value : undefined
}

/** Whether a JSON value contains an integer that a double cannot represent, such as a 19-digit id. */
function holdsInexactInteger(value: unknown): boolean {
  if (typeof value === 'number') return Number.isInteger(value) && !Number.isSafeInteger(value)
  return typeof value === 'object' && value !== null && Object.values(value).some(holdsInexactInteger)
}

function isPlain(value: unknown): boolean {
  try {
    assertPlainJson(value)
    return true
  } catch (error) {
    if (GatewayError.isInstance(error)) return false
    throw error
  }
}

/** Content of a chat message. */
type ChatContent = string | readonly ChatContentPart[] | null | undefined

/** Media types of URLs, which the vendor would otherwise have to guess. */
const TYPES_BY_EXTENSION: ReadonlyMap<string, string> = new Map([
  ['png', 'image/png'],
  ['jpg', 'image/jpeg'],
  ['jpeg', 'image/jpeg'],
  ['webp', 'image/webp'],
  ['gif', 'image/gif'],
  ['bmp', 'image/bmp'],
  ['heic', 'image/heic'],
  ['heif', 'image/heif'],
  ['pdf', 'application/pdf'],
])

/**
 * Converts the content of a message to parts. Empty texts are omitted, because the vendor rejects empty turns.
 * @throws GatewayError `unsupported_parameter` for a part without an equivalent, `invalid_request` for malformed data, each
 *   naming the part.
 */
function contentToWire(content: ChatContent, path: string, report: (field: string) => void): GeminiPart[] {
  if (content === null || content === undefined) return []
  if (typeof content === 'string') return textParts(content)
  return content.flatMap((part, index) => contentPart(part, `${path}[${index}]`, report))
}

/** Returns a text part, or none for an empty text. */
function textParts(text: string | null | undefined): GeminiPart[] {
  return typeof text === 'string' && text !== '' ? [{ text }] : []
}

function contentPart(part: ChatContentPart, path: string, report: (field: string) => void): GeminiPart[] {
  switch (part.type) {
    case 'text':
      return textParts(part.text)
    case 'refusal':
      return textParts(part.refusal)
    case 'image_url': {
      const { url, detail } = part.image_url
      if ((detail ?? 'auto') !== 'auto') report('image_url.detail')
      return [imagePart(url, `${path}.image_url.url`)]
    }
    case 'input_audio':
      return [audioPart(part.input_audio, `${path}.input_audio`)]
    case 'file':
      return [filePart(part.file, `${path}.file`)]
    default:
      throw unsupportedParameter(
        path,
        `${path}: the model does not support content of type ${JSON.stringify((part as { type: string }).type)}.`,
      )
  }
}

function imagePart(url: string, path: string): GeminiPart {
  return /^(?:https?|gs):\/\//i.test(url) ? remoteFile(url, path) : inlineData(url, path)
}

function remoteFile(url: string, path: string): GeminiPart {
  if (isVendorFile(url))
    throw unsupportedParameter(path, `${path}: files stored at the vendor cannot be used; send the file as data.`)
  const extension = /\.([a-z]+)(?:[?#]|$)/i.exec(url)?.[1]?.toLowerCase()
  const mimeType = TYPES_BY_EXTENSION.get(extension ?? '')
  return { fileData: { ...(mimeType === undefined ? {} : { mimeType }), fileUri: url } }
}

function audioPart(audio: { data?: unknown; format?: unknown } | undefined, path: string): GeminiPart {
  const { data, format } = audio ?? {}
  if (typeof data !== 'string' || data === '' || typeof format !== 'string' || !/^[\w.+-]+$/.test(format)) {
    throw invalidParameter(path, `${path}: data and format are required.`)
  }
  return { inlineData: { mimeType: `audio/${format === 'pcm16' ? 'pcm' : format.toLowerCase()}`, data } }
}

function filePart(file: { file_data?: unknown; file_url?: unknown } | undefined, path: string): GeminiPart {
  const { file_data: data, file_url: url } = file ?? {}
  // Other schemes, such as `gs:`, are read with the operator's rights.
  if (data === undefined && typeof url === 'string' && /^https?:\/\//i.test(url))
    return remoteFile(url, `${path}.file_url`)
  if (typeof data !== 'string') {
    throw unsupportedParameter(`${path}.file_id`, 'The model accepts files only as file_data.')
  }
  return inlineData(data, `${path}.file_data`)
}

function inlineData(url: string, path: string): GeminiPart {
  const { mediaType, base64 } = readDataUrl(url) ?? {}
  if (base64 === undefined || mediaType === undefined || mediaType === '') {
    const example = 'data:image/png;base64,…'
    throw invalidParameter(path, `${path}: must be a URL, or a data URL in base64 such as ${example}`)
  }
  return { inlineData: { mimeType: mediaType, data: base64 } }
}

const VENDOR_HOST = /^generativelanguage\.googleapis\.com\.?$/i

/**
 * Whether a URL names a file at the vendor (Gemini API, "Files API": `https://generativelanguage.googleapis.com/v1beta/files/…`).
 * The vendor opens it with the operator's key, and its owner is unknown here.
 */
export function isVendorFile(url: string): boolean {
  return URL.canParse(url) && VENDOR_HOST.test(new URL(url).hostname)
}
