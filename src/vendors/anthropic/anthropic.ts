import { keyPool } from '../shared/key-pool.ts'
import { vendorAddress } from '../shared/vendor-address.ts'
import type { ApiKeys, UnlistedModelOptions, Vendor } from '../vendor.ts'
import { chatDecoder } from './chat-decoder.ts'
import { chatFromWire } from './chat-from-wire.ts'
import { chatToWire, type MessagesAddress, SURCHARGES_LEFT_OUT } from './chat-to-wire.ts'
import { errorFrom } from './error-from.ts'
import { anthropicMedia } from './media-tokens.ts'
import { messagesOperation } from './messages-operation.ts'
import { modelAbilities } from './model-abilities.ts'
import { ownsReasoning, thinksUnseen } from './reasoning.ts'

/** Options of {@link anthropic}. */
export interface AnthropicOptions extends UnlistedModelOptions {
  /** One key or several; without one the vendor is not configured. */
  readonly apiKey?: ApiKeys
  /** Origin of the API, with a path prefix if need be; a trailing `/v1` is accepted. Default `https://api.anthropic.com`. */
  readonly baseURL?: string | undefined
  /** Value of the `anthropic-version` header, where the caller sends none. Default `2023-06-01`. */
  readonly version?: string | undefined
}

/**
 * Anthropic: its Messages API, passed through for Messages callers and translated for chat.
 * @throws TypeError when `baseURL` is not an http(s) URL.
 */
export function anthropic(options: AnthropicOptions = {}): Vendor {
  const { origin, prefix } = vendorAddress(options.baseURL ?? 'https://api.anthropic.com', '/v1')
  const pool = keyPool(options.apiKey)
  const { apiKeys } = pool
  const address: MessagesAddress = { path: `${prefix}/v1/messages`, version: options.version ?? '2023-06-01' }
  return {
    id: 'anthropic',
    displayName: 'Anthropic',
    origin,
    ...pool,
    configuredBy: 'ANTHROPIC_API_KEY or anthropic({ apiKey })',
    models: [],
    passUnknownModels: options.passUnknownModels ?? false,
    chat: {
      toWire: (call) => chatToWire(call, address),
      leavesOut: SURCHARGES_LEFT_OUT,
      fromWire: chatFromWire,
      decoder: (call, writer) => chatDecoder(call, writer, apiKeys),
      reasonsUnseen: ({ model, request }) => thinksUnseen(modelAbilities(model.upstream), request.reasoning_effort),
    },
    messages: messagesOperation(address, apiKeys),
    media: anthropicMedia,
    ownsReasoning,
    errorFrom: (answer, nowMs) => errorFrom(answer, nowMs, apiKeys),
  }
}
