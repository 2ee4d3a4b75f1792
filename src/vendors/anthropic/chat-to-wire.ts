import type { CatalogModel } from '../../catalog/model.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import type { Usage } from '../../core/usage.ts'
import type { ArgumentsMember } from '../../endpoints/answer-json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import type { ChatStreamDecoder, ChatStreamWriter } from '../../endpoints/chat/chat-stream-writer.ts'
import { EventDecoder } from '../../endpoints/event-reader.ts'
import type { KnownEvents } from '../../wire/event-template.ts'
import { type ModelAbilities, modelAbilities } from '../shared/messages-abilities.ts'
import { AnswerReader } from '../shared/messages-answer.ts'
import { MESSAGES_CHAT_FIELDS, type MessagesRequest, messagesFromChat } from '../shared/messages-from-chat.ts'
import { expectedAnswerTool } from '../shared/messages-tools.ts'
import { fieldCheck, surchargesLeftOut } from '../shared/translated-chat-fields.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import { withCacheControl } from './cache-control.ts'
import { messagesStreamError } from './error-from.ts'

/** Billing fields of surcharges that are never sent to the vendor. */
export const SURCHARGES_LEFT_OUT = surchargesLeftOut(MESSAGES_CHAT_FIELDS)

const reportDroppedFields = fieldCheck(MESSAGES_CHAT_FIELDS)

/** Returns the model's output limit. The vendor rejects higher bounds, so those of chats are lowered. */
export function mostOutputTokens({ limits, upstream }: CatalogModel): number {
  return limits.maxOutputTokens ?? modelAbilities(upstream).maxOutputTokens
}

/** Address and headers of the vendor. */
export interface MessagesAddress {
  /** Path of the endpoint below the origin. */
  readonly path: string
  /** Value of the `anthropic-version` header: a date. */
  readonly version: string
  /** Returns the headers that carry a key. Defaults to `x-api-key`. */
  readonly keyHeaders?: ((apiKey: string) => readonly string[]) | undefined
}

/** Returns the headers that authenticate a call. Empty for an empty key. */
export function keyHeadersFor({ keyHeaders }: MessagesAddress, apiKey: string): readonly string[] {
  if (apiKey === '') return []
  return keyHeaders === undefined ? ['x-api-key', apiKey] : keyHeaders(apiKey)
}

/** First API version in which every model rejects all sampling parameters (Anthropic, "Migration 2026-10-21"). */
const VERSION_WITHOUT_SAMPLING = '2026-10-21'

/**
 * Writes a chat as a Messages request.
 * @throws GatewayError `unsupported_parameter` or `invalid_request`, naming the field.
 */
export function chatToWire(call: VendorCall<ChatRequest>, address: MessagesAddress): WireRequest {
  const dropped = new Set<string>()
  const body = messagesRequestFor(call, address.version, (field) => void dropped.add(field), FETCHES_FILES)
  return {
    path: address.path,
    headers: [
      ...keyHeadersFor(address, call.apiKey),
      'anthropic-version',
      address.version,
      'content-type',
      'application/json',
      'accept',
      call.stream ? 'text/event-stream' : 'application/json',
      'accept-encoding',
      'identity',
    ],
    body: exactJsonText(body),
    dropped: [...dropped],
  }
}

/** Only the vendor's own API fetches files, clouds do not (Anthropic, "PDF support"). */
const FETCHES_FILES = { fileUrls: true } as const

/** Builds the body of a chat's Messages request. @param version Version of the API, which decides the rules. */
export function messagesRequestFor(
  call: VendorCall<ChatRequest>,
  version: string,
  report: (field: string) => void,
  offer: Pick<ModelAbilities, 'fileUrls'> = {},
): MessagesRequest {
  reportDroppedFields(call.request, report)
  const refusesSampling = version >= VERSION_WITHOUT_SAMPLING
  const abilities = { ...modelAbilities(call.model.upstream), ...offer }
  return withCacheControl(messagesFromChat(call, { abilities, refusesSampling }, report), call, report)
}

/**
 * Reads a streamed Messages answer (Anthropic, "Streaming messages"). The `type` in the data identifies an event; nothing
 * is returned after an error or after the end.
 * @param apiKeys Removed from the text of an error inside the stream.
 */
export function chatDecoder(
  call: VendorCall<ChatRequest>,
  writer: ChatStreamWriter,
  apiKeys: readonly string[],
): ChatStreamDecoder {
  return new ChatDecoder(new AnswerReader(writer, expectedAnswerTool(call.request)), apiKeys)
}

class ChatDecoder extends EventDecoder<true> implements ChatStreamDecoder {
  protected override readonly argumentsMember: ArgumentsMember = 'input'
  readonly #answer: AnswerReader
  readonly #apiKeys: readonly string[]

  constructor(answer: AnswerReader, apiKeys: readonly string[]) {
    super()
    this.#answer = answer
    this.#apiKeys = apiKeys
  }

  get isComplete(): boolean {
    return this.#answer.isComplete
  }

  get usage(): Usage | undefined {
    return this.#answer.usage
  }

  protected override readKnown(known: KnownEvents<true>): boolean {
    const { text } = known
    if (text !== undefined) this.#answer.readText(text)
    return text !== undefined
  }

  protected override readValue(event: Record<string, unknown>): void {
    if (event['type'] === 'error') {
      this.fail(messagesStreamError(event, this.#apiKeys))
      return
    }
    if (this.#answer.read(event)) this.learn(event, [['delta', 'text']], true)
    if (this.isComplete) this.finish()
  }
}
