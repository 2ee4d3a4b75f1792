import type { CatalogModel } from '../../catalog/model.ts'
import { exactJsonText } from '../../core/exact-json.ts'
import type { ChatRequest } from '../../endpoints/chat/chat-request.ts'
import { type ModelAbilities, modelAbilities } from '../shared/messages-abilities.ts'
import { MESSAGES_CHAT_FIELDS } from '../shared/messages-chat-fields.ts'
import { type MessagesRequest, messagesFromChat } from '../shared/messages-from-chat.ts'
import { fieldCheck, surchargesLeftOut } from '../shared/translated-chat-fields.ts'
import type { VendorCall, WireRequest } from '../vendor.ts'
import { withCacheControl } from './cache-control.ts'

/** Billing fields of surcharges that the vendor never hears of. */
export const SURCHARGES_LEFT_OUT = surchargesLeftOut(MESSAGES_CHAT_FIELDS)

const reportDroppedFields = fieldCheck(MESSAGES_CHAT_FIELDS)

/** The vendor refuses a bound above what the model can write, so that a chat's is lowered. */
export function mostOutputTokens({ limits, upstream }: CatalogModel): number {
  return limits.maxOutputTokens ?? modelAbilities(upstream).maxOutputTokens
}

/** Where and how the vendor is reached. */
export interface MessagesAddress {
  /** Path of the endpoint below the origin. */
  readonly path: string
  /** Value of the `anthropic-version` header: a date. */
  readonly version: string
  /** The headers by which a key is sent; `x-api-key` when absent. */
  readonly keyHeaders?: ((apiKey: string) => readonly string[]) | undefined
}

/** The headers that prove a call; none for an empty key. */
export function keyHeadersFor({ keyHeaders }: MessagesAddress, apiKey: string): readonly string[] {
  if (apiKey === '') return []
  return keyHeaders === undefined ? ['x-api-key', apiKey] : keyHeaders(apiKey)
}

/** The first API version that refuses all sampling parameters on every model (Anthropic, "Migration 2026-10-21"). */
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

/** Of the vendor's own API; clouds fetch nothing (Anthropic, "PDF support"). */
const FETCHES_FILES = { fileUrls: true } as const

/** The body of a chat's Messages request. @param version Of the API, whose rules it follows. */
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
