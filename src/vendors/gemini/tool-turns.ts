import { GatewayError } from '../../core/errors.ts'
import { isJsonObject } from '../../core/json.ts'
import type { ChatMessage, ChatToolCall } from '../../endpoints/chat/chat-request.ts'
import { type ChatContent, contentParts } from './content-parts.ts'
import type { GeminiPart } from './generate-content.ts'
import { holdsInexactInteger, jsonObjectText } from './json-object-text.ts'
import { signatureOf } from './thought-signature.ts'

/** A function call of the history, waiting for its response. */
interface OpenCall {
  readonly id: string
  readonly name: string
  response: GeminiPart | undefined
}

/** All calls of one assistant message and, gathered in call order wherever they stood, their responses. */
export class ToolStep {
  readonly callParts: readonly GeminiPart[]
  readonly #calls: readonly OpenCall[]
  /** What a tool answered beyond text; the vendor takes it as parts of the same turn. */
  readonly #mediaParts: GeminiPart[] = []

  /** @throws GatewayError `unsupported_parameter` naming a call that is not of a function. */
  constructor(calls: readonly ChatToolCall[], path: string) {
    this.callParts = calls.map((call, index) => callPart(call, `${path}[${index}]`))
    this.#calls = calls.map((call) => ({ id: call.id, name: call.function.name, response: undefined }))
  }

  /** Takes a tool message if it answers a call of this step that is still open. */
  accept(message: ChatMessage, path: string, report: (field: string) => void): boolean {
    const call = this.#calls.find((open) => open.id === message.tool_call_id && open.response === undefined)
    if (call === undefined) return false
    const { text, media } = splitContent(message.content)
    // The vendor matches by name where a model knows no ids, so the name comes from the call and not from the message.
    call.response = {
      functionResponse: {
        ...(call.id === '' ? {} : { id: call.id }),
        name: call.name,
        response: responseObject(text),
      },
    }
    for (const part of contentParts(media, `${path}.content`, report)) this.#mediaParts.push(part)
    return true
  }

  /** The parts of the user turn that follows the calls. */
  get responseParts(): GeminiPart[] {
    const responses = this.#calls.flatMap(({ response }) => (response === undefined ? [] : [response]))
    return [...responses, ...this.#mediaParts]
  }
}

function callPart(call: ChatToolCall, path: string): GeminiPart {
  if (!isJsonObject(call.function)) {
    throw new GatewayError('unsupported_parameter', {
      message: `${path}: the model supports calls of functions only.`,
      param: path,
    })
  }
  const signature = signatureOf(call.extra_content)
  return {
    functionCall: {
      ...(call.id === '' ? {} : { id: call.id }),
      name: call.function.name,
      args: callArguments(call.function.arguments),
    },
    ...(signature === undefined ? {} : { thoughtSignature: signature }),
  }
}

/** Arguments must be an object here; text that is none, as models sometimes write it, is kept under a name of its own. */
function callArguments(text: string): Record<string, unknown> {
  if (text.trim() === '') return {}
  return jsonObjectText(text) ?? { arguments: text }
}

/** A response must be an object: one that a tool wrote stays, anything else goes under the vendor's own name for it. */
function responseObject(text: string): Record<string, unknown> {
  const value = jsonObjectText(text)
  // An id of 19 digits would come out as another one; as text it stays what it was.
  return value === undefined || holdsInexactInteger(value) ? { output: text } : value
}

function splitContent(content: ChatContent): { text: string; media: Exclude<ChatContent, string | null | undefined> } {
  if (content === null || content === undefined) return { text: '', media: [] }
  if (typeof content === 'string') return { text: content, media: [] }
  const text = content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('')
  return { text, media: content.filter((part) => part.type !== 'text') }
}
